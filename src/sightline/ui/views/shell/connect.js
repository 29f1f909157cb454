// @ts-check
/** The dialog that shows how to connect a client. */

import { about } from "../../kit/about.js";
import { CopyBlock } from "../../kit/copy.js";
import { Dialog } from "../../kit/dialog.js";
import { onArrows } from "../../kit/keyboard.js";
import { useResource } from "../../kit/resource.js";
import { h, html, useState } from "../../vendor/preact.js";

/** @import { Client } from "../../kit/about.js" */

/** @param {{ onClose: () => void }} props */
export function Connect({ onClose }) {
  const { version, address } = about.value;
  return h(Dialog, {
    title: "Connect a client",
    width: 720,
    onClose,
    children: html`
      <p class="soft">
        Sightline ${version} listens at <code>${address}</code>. Start a client through it, or set its base URL by hand.
      </p>
      ${h(Clients, {})}
      <section class="connect-more" aria-label="More">
        <h3>Label the traffic, or choose the provider</h3>
        <p class="soft">Put either before the path. Filters and rules can then match it.</p>
        ${h(CopyBlock, { text: `${address}/s/my-task/v1\n${address}/p/anthropic/s/my-task` })}
      </section>
      ${h(Providers, {})}`,
  });
}

const OWN_SERVER = `[providers.mine]
dialect = "openai-chat"
base_url = "http://127.0.0.1:8000/v1"`;

/** The providers, each as it is found when the dialog opens: what is said to be ready has answered. */
function Providers() {
  const { value: found, trouble } = useResource("/api/providers");
  if (trouble || found?.length === 0) return null;
  return html`<section class="connect-more" aria-label="Providers">
    <h3>Providers</h3>
    ${
      found
        ? html`<ul class="providers">
            ${[...found]
              .sort((a, b) => Number(b.ready) - Number(a.ready))
              .map(
                (each) => html`<li key=${each.name} title=${each.why}>
                  <span class=${each.ready ? "dot ready" : "dot"}></span>
                  <span>${each.name}</span>
                  <span class="faint">${each.why ? firstSentence(each.why) : "ready"}</span>
                </li>`,
              )}
          </ul>`
        : html`<p class="faint" role="status">Checking the providers on this machine…</p>`
    }
    <p class="soft">
      A server of your own takes a table in <code>sightline.toml</code>. Start Sightline again, and ask for${" "}
      <code>mine/MODEL</code>:
    </p>
    ${h(CopyBlock, { text: OWN_SERVER, label: "Copy the table" })}
  </section>`;
}

/** @param {string} text */
function firstSentence(text) {
  return text.split(/\.(?:\s|$)/)[0];
}

/** The clients as tabs, with what to type for the chosen one. */
export function Clients() {
  const { clients } = about.value;
  const [chosen, setChosen] = useState(0);
  const client = clients[Math.min(chosen, clients.length - 1)];
  if (!client) return null;
  const onKey = onArrows(clients.length, chosen, setChosen);
  return html`<div class="clients boxed">
    <div class="client-tabs" role="tablist" aria-label="Clients" onKeyDown=${onKey}>
      ${clients.map(
        (each, index) => html`<button
          key=${each.name}
          type="button"
          class="tab-button"
          role="tab"
          aria-selected=${index === chosen}
          aria-controls="client-panel"
          tabindex=${index === chosen ? 0 : -1}
          onClick=${() => setChosen(index)}
        >
          ${each.name}
        </button>`,
      )}
    </div>
    <div id="client-panel" class="client-panel" role="tabpanel" aria-label=${client.name}>${h(Steps, { client })}</div>
  </div>`;
}

/** @param {{ client: Client }} props */
function Steps({ client }) {
  const variables = Object.entries(client.env ?? {}).map(([name, value]) => `export ${name}=${value}`);
  return html`
    ${
      client.command &&
      html`<p class="step">Start it through Sightline; your own configuration is not changed:</p>
      ${h(CopyBlock, { text: client.command, label: "Copy command" })}`
    }
    ${
      variables.length
        ? html`<p class="step">
              ${client.command ? "Or set the variable yourself:" : "Set the variable that it reads:"}
            </p>
            ${h(CopyBlock, { text: variables.join("\n"), label: "Copy variables" })}`
        : null
    }
    ${client.note ? html`<p class="soft step">${client.note}</p>` : null}`;
}
