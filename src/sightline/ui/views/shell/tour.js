// @ts-check
/**
 * The tour of the example: a recorded session that comes with Sightline, in a record of its own. While the page shows
 * it, this bar is above every view.
 */

import { disconnect, get } from "../../kit/api.js";
import { button, iconButton } from "../../kit/button.js";
import { hashOf } from "../../kit/core/routes.js";
import { go, route } from "../../kit/navigation.js";
import { attempt, toastError } from "../../kit/toast.js";
import { html, useEffect, useState } from "../../vendor/preact.js";

/** @import { Route } from "../../kit/core/routes.js" */
/** @typedef {{ title: string, words: string, to: Route }} Step */

/** @param {Record<string, string>} places ids by what they are an example of @returns {Step[]} */
function stepsTo(places) {
  const request = (/** @type {string} */ name, /** @type {string} */ tab) =>
    /** @type {Route} */ ({ view: "request", id: places[name], tab });
  return [
    {
      title: "Traffic",
      words: "Every request, newest first, with its tokens, cost and time. Requests of one session are one group.",
      to: { view: "traffic", filter: "" },
    },
    {
      title: "A session",
      words: "A coding agent fixes a bug: one row for each turn, what filled its context, and where the cache broke.",
      to: { view: "session", name: places.session },
    },
    {
      title: "A request",
      words: "Exactly what the agent sent: its instructions, tools and results, each with its tokens.",
      to: request("turn", "sections"),
    },
    {
      title: "A held request",
      words: "This one waits for you. Edit or delete any section, then send it. The embedded model answers.",
      to: request("held", "sections"),
    },
    {
      title: "An edit",
      words: "This request was held and edited. The diff shows what changed, and what that costs.",
      to: request("edited", "diff"),
    },
    {
      title: "A reply",
      words: "What the model answered. The request was replayed on two other models; “2 replays” compares the answers.",
      to: request("replayed", "reply"),
    },
    {
      title: "Losses",
      words: "A client of one API, answered by another. The list shows everything that could not be translated.",
      to: request("translated", "losses"),
    },
    {
      title: "Timeline",
      words: "The provider was overloaded, so the request was sent again. Each attempt is recorded.",
      to: request("retried", "timeline"),
    },
    { title: "Chat", words: "A chat whose history is exactly what is sent.", to: { view: "chat", filter: "" } },
    {
      title: "A run",
      words: "The chat used tools: each call, who allowed it, and what it returned.",
      to: { view: "run", id: places.run },
    },
    {
      title: "Evals",
      words: "The same questions to two models. Open a red cell to see why it failed.",
      to: { view: "eval", id: places.eval },
    },
    {
      title: "Costs",
      words: "What the requests cost by day, model or session, and what the cache saved.",
      to: { view: "costs", by: "model", filter: "" },
    },
  ];
}

/** Open the example in this tab. */
export function showExample() {
  location.assign("/example/");
}

/** Remove the example, and go back to the user's own record. */
export async function leaveExample() {
  disconnect();
  if (await attempt(() => fetch("/example/", { method: "DELETE" }))) location.assign("/");
}

/** The bar: what this view shows, the way to the next one, and the way out. */
export function Tour() {
  const [steps, setSteps] = useState(/** @type {Step[]} */ ([]));
  const [place, setPlace] = useState(0);
  useEffect(() => void get("/api/example").then(({ places }) => setSteps(stepsTo(places)), toastError), []);
  const here = hashOf(route.value);
  const found = steps.findIndex((each) => hashOf(each.to) === here);
  useEffect(() => {
    if (found >= 0) setPlace(found);
  }, [found]);
  const step = found >= 0 ? steps[found] : null;
  const walk = (/** @type {number} */ to) => {
    setPlace(to);
    go(steps[to].to);
  };
  return html`<section class="tour in-row" aria-label="Tour">
    <span class="tour-mark">Example data</span>
    <p>
      ${
        step
          ? html`<strong>${found + 1} of ${steps.length} · ${step.title}.</strong> ${step.words}`
          : "Nothing here is from your own record. Look around, or continue the tour."
      }
    </p>
    <nav aria-label="Tour">
      ${iconButton("back", "Previous view of the tour", () => walk(place - 1), {
        title: "Previous view of the tour",
        isDisabled: place === 0,
      })}
      ${button("Next", () => walk(place + 1), { kind: "primary", isDisabled: place >= steps.length - 1 })}
      ${button("Leave the example", () => void leaveExample())}
    </nav>
  </section>`;
}
