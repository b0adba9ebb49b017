// What the tests let sepa-js do. Says what happens as JSON lines.
const [http, ws, secure, part] = process.argv.slice(2)
const { SEPA, client, Jsap } = require("@arces-wot/sepa-js")
const readline = require("readline").createInterface({ input: process.stdin })

const say = (what, value) => console.log(JSON.stringify([what, value === undefined ? null : value]))
const fail = error => { say("failed", String(error && error.stack || error)); process.exit(1) }
process.on("unhandledRejection", fail)

const [httpUrl, wsUrl] = [new URL(http), new URL(ws)]
const prefix = secure === "yes" ? "/secure" : ""
const settings = () => ({
  host: httpUrl.hostname,
  oauth: { enable: false, register: `${http}/oauth/register`, tokenRequest: `${http}/oauth/token` },
  sparql11protocol: {
    protocol: httpUrl.protocol.slice(0, -1),
    port: Number(httpUrl.port),
    query: { path: `${prefix}/query`, method: "POST", format: "JSON" },
    update: { path: `${prefix}/update`, method: "POST", format: "JSON" }
  },
  sparql11seprotocol: {
    protocol: "ws",
    availableProtocols: { ws: { port: Number(wsUrl.port), path: `${prefix}/subscribe` } }
  },
  options: {}
})

async function open() {
  if (secure !== "yes") return new SEPA(settings())
  // As `secure.register` does; that one goes on with fixed ports.
  const registered = await fetch(`${http}/oauth/register`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ register: { client_identity: `sepa-js ${part}`, grant_types: ["client_credentials"] } })
  })
  const { credentials } = await registered.json()
  const one = new client.secure(credentials.client_id, credentials.client_secret, settings())
  await one.login()
  return one
}

function waiting(emitter, name) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no ${name}`)), 20000)
    emitter.once(name, value => { clearTimeout(timer); resolve(value) })
  })
}

async function main() {
  const sepa = await open()
  const update = async text => say("updated", (await sepa.update(text)).status)
  const query = async text => say("queried", (await sepa.query(text)).results.bindings)
  await (part === "many" ? many(sepa, update, query) : restart(sepa, update))
  say("done")
  process.exit(0)
}

async function many(sepa, update, query) {
  await update('INSERT DATA { <urn:a> <urn:p> "first" }')
  await query("SELECT ?o { <urn:a> <urn:p> ?o }")

  const all = sepa.subscribe("SELECT ?o { <urn:a> <urn:p> ?o }")
  const other = sepa.subscribe('ASK { <urn:a> <urn:p> "second" }', undefined, "mine")
  other.on("error", fail)
  all.on("error", fail)
  say("subscribed", (await Promise.all([waiting(all, "subscribed"), waiting(other, "subscribed")]))
    .map(one => [one.sequence, one.addedResults.results.bindings.length]))
  const told = Promise.all([waiting(all, "notification"), waiting(other, "notification")])
  await update('DELETE { <urn:a> <urn:p> ?o } INSERT { <urn:a> <urn:p> "second" } WHERE { <urn:a> <urn:p> ?o }')
  for (const one of await told)
    say("notified", [one.sequence, one.addedResults.results.bindings, one.removedResults.results.bindings])
  const ended = waiting(other, "unsubscribed")
  other.unsubscribe()
  await ended
  say("unsubscribed")
  if (secure === "yes") return

  const wrong = sepa.subscribe("no query at all", undefined, "wrong")
  say("refused", (await waiting(wrong, "error")).status_code)
  const app = new Jsap({
    ...settings(),
    namespaces: { ex: "urn:" },
    updates: { put: { sparql: "INSERT DATA { ?s ex:p ?o }", forcedBindings: { s: { type: "uri", value: "ex:b" }, o: { type: "literal", value: "x" } } } },
    queries: { get: { sparql: "SELECT ?o { ex:b ex:p ?o }" } }
  })
  await app.put({ o: "from a profile" })
  say("profile", (await app.get.query({})).results.bindings)
}

// It connects again by itself, for one subscription per connection; with more, it stumbles over its own messages.
async function restart(sepa, update) {
  const all = sepa.subscribe("SELECT ?o { <urn:a> <urn:p> ?o }")
  await waiting(all, "subscribed")
  const again = waiting(all, "subscribed")
  say("ready")
  await new Promise(resolve => readline.once("line", resolve))
  say("subscribed again", (await again).addedResults.results.bindings)
  const third = waiting(all, "notification")
  await update('INSERT DATA { <urn:a> <urn:p> "third" }')
  say("notified", (await third).addedResults.results.bindings)
}

main().catch(fail)
