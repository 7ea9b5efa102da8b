// The HTTP API, as its own description says: every route, what it takes and what it returns.
import {Problem, Prose, html, useTitle} from "../ui.js";
import {get, useLive} from "../api.js";

/** A schema's name, or its type in a few words. */
export function typeOf(schema) {
  if (!schema || typeof schema !== "object") return "anything";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if (schema.anyOf || schema.oneOf) return (schema.anyOf ?? schema.oneOf).map(typeOf).filter((type) => type !== "null").join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  const type = [schema.type].flat().filter((name) => name && name !== "null").join(" or ");
  if (type === "array") return `list of ${typeOf(schema.items)}`;
  return type || (schema.type === "null" ? "null" : "anything");
}

const bodyOf = (content) => Object.entries(content ?? {}).map(([media, {schema}]) => [media, typeOf(schema)]);

const Fields = ({schema}) => {
  const fields = Object.entries(schema?.properties ?? {});
  if (fields.length === 0) return html`<p class="quiet"><${Prose} text=${schema?.description ?? typeOf(schema)} /></p>`;
  const required = new Set(schema.required ?? []);
  return html`<dl class="fields">${fields.map(([name, field]) => html`<div key=${name}>
    <dt><code>${name}</code> <span class="quiet">${typeOf(field)}${required.has(name) && ", required"}</span></dt>
    <dd><${Prose} text=${field.description ?? ""} /></dd></div>`)}</dl>`;
};

function Schema({name, schemas}) {
  const plain = name.replace(/^list of /, "");
  const schema = schemas[plain];
  return schema ? html`<details><summary>${name}</summary><${Fields} schema=${schema} /></details>` : html`<span>${name}</span>`;
}

function Operation({method, path, about, schemas}) {
  const id = `${method} ${path}`;
  const answers = Object.entries(about.responses ?? {});
  return html`<details class="operation"><summary><code>${id}</code> <span>${about.summary}</span></summary>
    ${about.description && html`<p><${Prose} text=${about.description} /></p>`}
    ${(about.parameters ?? []).length > 0 && html`<h3>Parameters</h3><dl class="fields">${about.parameters.map((at) => html`<div key=${at.name}>
      <dt><code>${at.name}</code> <span class="quiet">${at.in}, ${typeOf(at.schema)}${at.required && ", required"}</span></dt><dd><${Prose} text=${at.description ?? ""} /></dd></div>`)}</dl>`}
    ${about.requestBody && html`<h3>Body</h3>${bodyOf(about.requestBody.content).map(([media, type]) =>
      html`<div key=${media}><code>${media}</code> <${Schema} name=${type} schemas=${schemas} /></div>`)}`}
    <h3>Responses</h3><dl class="fields">${answers.map(([status, answer]) => html`<div key=${status}><dt><code>${status}</code></dt>
      <dd><${Prose} text=${answer.description} /> ${bodyOf(answer.content).map(([media, type]) => html`<${Schema} key=${media} name=${type} schemas=${schemas} />`)}</dd></div>`)}</dl>
  </details>`;
}

export function ApiView() {
  // It never changes while the page is open.
  const {data, error} = useLive((signal) => get("/openapi.json", signal), [], 2000, () => true);
  useTitle("HTTP API");
  if (!data) return html`<h1>HTTP API</h1><${Problem} error=${error} />${!error && html`<p class="quiet">Reading…</p>`}`;
  const schemas = data.components?.schemas ?? {};
  const operations = Object.entries(data.paths).flatMap(([path, methods]) =>
    Object.entries(methods).filter(([method]) => /^(get|post|put|patch|delete)$/.test(method)).map(([method, about]) => ({method: method.toUpperCase(), path, about})));
  return html`<h1>HTTP API</h1>
    <p><${Prose} text=${data.info.description ?? data.info.title} /> The description for programs: <a href="/openapi.json">openapi.json</a>.</p>
    ${operations.map(({method, path, about}) => html`<${Operation} key=${method + path} method=${method} path=${path} about=${about} schemas=${schemas} />`)}`;
}
