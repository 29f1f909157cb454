// @ts-check
/** The session of a request: its name, the place of this turn in it, and the turns beside it. */

import { iconButton } from "../../kit/button.js";
import { hashOf } from "../../kit/core/routes.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { go, route, toExchange } from "../../kit/navigation.js";
import { useResource } from "../../kit/resource.js";
import { html } from "../../vendor/preact.js";

/** @import { View } from "./core/exchange.js" */

/**
 * The session, the place of this turn in it, and the turns beside it.
 * @param {{ view: View }} props
 */
export function InSession({ view }) {
  // A turn that ends may have made its successor possible; only the record knows what came before and after.
  const { value: place } = useResource(`/api/exchanges/${view.id}/place`, undefined, view.state);
  const tab = route.value.view === "request" ? route.value.tab : "sections";
  const step = (/** @type {string | undefined} */ id) => id && toExchange(id, tab);
  useShortcuts(
    "Request",
    [
      { keys: "[", label: "Previous turn of the session", run: () => step(place?.previous) },
      { keys: "]", label: "Next turn of the session", run: () => step(place?.next) },
      {
        keys: "s",
        label: "Open the session",
        run: () => go({ view: "session", name: view.session || place?.key || view.id }),
      },
    ],
    [view.id, view.session, place, tab],
  );
  if (!view.session && (!place || place.turns < 2)) return null;
  return html`<span class="in-session">
    <a
      class="chip session cut"
      href=${hashOf({ view: "session", name: view.session || place?.key || view.id })}
      title=${view.session ? `Session ${view.session} (s)` : "The conversation (s)"}
    >
      ${view.session || "conversation"}
    </a>
    ${
      place && place.turns > 1
        ? html`${iconButton("back", "Previous turn", () => step(place.previous), {
            title: "Previous turn ([)",
            isDisabled: !place.previous,
          })}
            <span class="number soft">turn ${place.turn} of ${place.turns}</span>
            ${iconButton("right", "Next turn", () => step(place.next), {
              title: "Next turn (])",
              isDisabled: !place.next,
            })}`
        : null
    }
    ${
      place?.above
        ? html`<a class="soft" href=${hashOf({ view: "request", id: place.above, tab: "sections" })}>
            caused by a turn
          </a>`
        : null
    }
  </span>`;
}
