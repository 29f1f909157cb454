// @ts-check
/** Why the cache missed, on the row of a request that read less than half of its prompt from it. */

import { get } from "../../kit/api.js";
import { money, whole } from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { h, html, useEffect, useState } from "../../vendor/preact.js";

/** @import { CacheTurn } from "../../api-types.d.ts" */
/** @import { Line } from "./core/lines.js" */

/** No provider caches a shorter prompt, and what is read in part is seen in the bar of its tokens. */
const SHORTEST = 1024;
/** Rows within so many milliseconds are asked for together, and so many at once. */
const TOGETHER = 60;
const AT_ONCE = 20;

/** @type {Map<string, Promise<CacheTurn | null>>} */
const known = new Map();
/** @type {Map<string, (turn: CacheTurn | null) => void>} */
const waiting = new Map();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/** @param {string} id */
function find(id) {
  const asked = known.get(id) ?? new Promise((found) => waiting.set(id, found));
  known.set(id, asked);
  timer ??= setTimeout(askTogether, TOGETHER);
  return asked;
}

async function askTogether() {
  timer = undefined;
  const asked = [...waiting].slice(0, AT_ONCE);
  for (const [id] of asked) waiting.delete(id);
  if (waiting.size) timer = setTimeout(askTogether, 0);
  if (!asked.length) return;
  const ids = asked.map(([id]) => id).join(",");
  const turns = await get(`/api/cache?exchange=${encodeURIComponent(ids)}`).then(
    (report) => new Map(report.turns.map((turn) => [turn.exchange, turn])),
    () => null, // the rows stay without a word; the next one that is shown asks again
  );
  for (const [id, found] of asked) {
    if (!turns) known.delete(id);
    found(turns?.get(id) ?? null);
  }
}

/** Whether it is worth asking why. @param {Line} line */
export const mayHaveMissed = (line) =>
  line.state === "finished" &&
  Boolean(line.previous) &&
  !line.is_side &&
  (line.input_tokens ?? 0) >= SHORTEST &&
  (line.cached_tokens ?? 0) < (line.input_tokens ?? 0) / 2;

/** For a line that may have missed. @param {{ line: Line }} props */
export function CacheCause({ line }) {
  const [turn, setTurn] = useState(/** @type {CacheTurn | null} */ (null));
  useEffect(() => {
    let isThere = true;
    setTurn(null);
    void find(line.id).then((found) => isThere && setTurn(found));
    return () => void (isThere = false);
  }, [line.id]);
  if (!turn?.autopsy.lost_tokens || turn.autopsy.cause === "below_minimum") return null;
  const { autopsy, reason } = turn;
  const price = autopsy.money ? ` (${money(autopsy.money)})` : "";
  return html`<a
    class="cache-cause"
    href=${hashOf({ view: "request", id: line.id, tab: "diff", against: turn.previous })}
    tabindex="-1"
    title=${`The cache missed: ${reason}. ${whole(autopsy.lost_tokens)} tokens were not read from the cache${price}.`}
    onClick=${(/** @type {MouseEvent} */ event) => event.stopPropagation()}
  >
    ${h(Icon, { name: "warn" })}cache: ${reason}
  </a>`;
}
