"use strict"
// Everything that comes from the broker is put on the page as text, never as HTML.
const at = id => document.getElementById(id)
const made = (tag, text, kind) => {
  const one = document.createElement(tag)
  if (text !== undefined) one.textContent = text
  if (kind) one.className = kind
  return one
}
const headers = more => at("token").value ? { ...more, Authorization: `Bearer ${at("token").value}` } : more

const shown = term => {
  if (!term) return ""
  if (term.type === "uri") return `<${term.value}>`
  if (term.type === "bnode") return `_:${term.value}`
  if (term.type === "triple") return `<< ${shown(term.value.subject)} ${shown(term.value.predicate)} ${shown(term.value.object)} >>`
  const text = JSON.stringify(term.value)
  return term["xml:lang"] ? `${text}@${term["xml:lang"]}` : term.datatype ? `${text}^^<${term.datatype}>` : text
}

function fill(table, names, rows, fresh) {
  const head = made("tr")
  names.forEach(name => head.append(made("th", name)))
  const lines = rows.slice(0, 1000).map(row => {
    const line = made("tr", undefined, fresh && fresh.has(key(row)) ? "new" : "")
    names.forEach(name => line.append(made("td", shown(row[name]))))
    return line
  })
  table.replaceChildren(head, ...lines)
}

const key = row => JSON.stringify(Object.entries(row).sort())

async function described(response) {
  const text = await response.text()
  try { return JSON.parse(text).error_description || text } catch { return text }
}

async function update() {
  at("changed").className = ""
  at("changed").textContent = "…"
  try {
    const response = await fetch("update?quads=true", {
      method: "POST", headers: headers({ "Content-Type": "application/sparql-update" }), body: at("update").value
    })
    if (!response.ok) throw new Error(await described(response))
    const answer = await response.json()
    at("changed").replaceChildren(
      made("span", `Change ${answer.sequence}: ${answer.inserted} inserted, ${answer.deleted} deleted\n`),
      ...answer.quads.deleted.slice(0, 100).map(quad => made("span", `- ${quad}\n`, "out")),
      ...answer.quads.inserted.slice(0, 100).map(quad => made("span", `+ ${quad}\n`, "in")))
  } catch (error) {
    at("changed").className = "error"
    at("changed").textContent = error.message
  }
}

async function ask() {
  at("problem").textContent = ""
  at("text").textContent = ""
  at("result").replaceChildren()
  at("count").textContent = "…"
  try {
    const response = await fetch("query", {
      method: "POST",
      headers: headers({ "Content-Type": "application/sparql-query", Accept: "application/sparql-results+json, text/turtle;q=0.9" }),
      body: at("query").value
    })
    if (!response.ok) throw new Error(await described(response))
    if (!response.headers.get("content-type").includes("json")) {
      at("text").textContent = await response.text()
      at("count").textContent = ""
      return
    }
    const answer = await response.json()
    if ("boolean" in answer) {
      at("text").textContent = answer.boolean ? "true" : "false"
      at("count").textContent = ""
    } else {
      fill(at("result"), answer.head.vars, answer.results.bindings)
      at("count").textContent = `${answer.results.bindings.length} rows`
    }
  } catch (error) {
    at("count").textContent = ""
    at("problem").textContent = error.message
  }
}

class Followed {
  constructor(query) {
    this.query = query
    this.rows = new Map()
    this.box = made("section")
    this.status = made("span", "connecting …", "quiet")
    const end = made("button", "End")
    end.onclick = () => this.end()
    const bar = made("div", undefined, "bar")
    bar.append(this.status, end)
    this.table = made("table")
    const scroll = made("div", undefined, "scroll")
    scroll.append(this.table)
    this.box.append(made("pre", query), bar, scroll)
    at("followed").prepend(this.box)
    at("none").hidden = true
    this.connect()
  }

  connect() {
    const address = new URL("subscribe", location.href)
    address.protocol = address.protocol.replace("http", "ws")
    this.socket = new WebSocket(address)
    this.socket.onopen = () => {
      const subscribe = { sparql: this.query }
      if (at("token").value) subscribe.authorization = `Bearer ${at("token").value}`
      if (this.spuid) Object.assign(subscribe, { spuid: this.spuid, sequence: this.sequence })
      this.socket.send(JSON.stringify({ subscribe }))
    }
    this.socket.onmessage = event => this.take(JSON.parse(event.data))
    this.socket.onclose = () => {
      if (this.ended) return
      this.status.textContent = "connection lost; trying again …"
      setTimeout(() => this.connect(), 1000)
    }
  }

  take(message) {
    if (message.error) {
      this.status.textContent = message.error_description
      this.status.className = "error"
      this.ended = true
      this.socket.close()
    }
    const step = message.notification
    if (!step) return
    if (step.sequence === 0) this.rows.clear()
    this.spuid = step.spuid
    this.sequence = step.sequence
    const fresh = new Set()
    for (const row of step.removedResults.results.bindings) {
      const found = this.rows.get(key(row))
      if (found && --found.count === 0) this.rows.delete(key(row))
    }
    for (const row of step.addedResults.results.bindings) {
      const found = this.rows.get(key(row))
      if (found) found.count++
      else this.rows.set(key(row), { row, count: 1 })
      if (step.sequence) fresh.add(key(row))
    }
    const all = [...this.rows.values()].flatMap(one => Array(one.count).fill(one.row))
    fill(this.table, step.addedResults.head.vars, all, fresh)
    const [added, removed] = [step.addedResults, step.removedResults].map(one => one.results.bindings.length)
    this.status.textContent = `${all.length} rows · notification ${step.sequence}, change ${step.change}: +${added} −${removed}`
  }

  end() {
    this.ended = true
    if (this.socket.readyState === WebSocket.OPEN && this.spuid)
      this.socket.send(JSON.stringify({ unsubscribe: { spuid: this.spuid, authorization: at("token").value || undefined } }))
    this.socket.close()
    this.box.remove()
    at("none").hidden = at("followed").childElementCount > 0
  }
}

async function watch() {
  try {
    const answer = await (await fetch("echo")).json()
    at("state").textContent = `${location.host} · change ${answer.sequence}`
  } catch {
    at("state").textContent = "the broker does not answer"
  }
  setTimeout(watch, 2000)
}

at("send").onclick = update
at("ask").onclick = ask
at("follow").onclick = () => new Followed(at("query").value)
for (const [id, action] of [["update", update], ["query", ask]])
  at(id).onkeydown = event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) action() }
watch()
