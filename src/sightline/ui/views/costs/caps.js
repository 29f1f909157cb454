// @ts-check
/** What is left of the caps, and a way to raise one. */

import { onAnnounced, onKinds, put, stopAll } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { money, whole } from "../../kit/core/format.js";
import { textField } from "../../kit/fields.js";
import { followTogether, useResource } from "../../kit/resource.js";
import { attempt, toast } from "../../kit/toast.js";
import { h, html, useState } from "../../vendor/preact.js";

/** @import { CapBucket, CapShown } from "../../api-types.d.ts" */

const MOST_SHOWN = 12;
const WARN_AT = 0.8;
const ENDS = new Set(["finished", "failed", "cancelled", "dropped"]);

/** Caps change with every exchange that ends. */
const follow = followTogether((soon) => stopAll(onKinds(ENDS, soon), onAnnounced("cap", soon)), 300, {
  isAtRest: true,
});

export function Caps() {
  const { value, again } = useResource("/api/caps", follow);
  if (!value?.caps.length) return null;
  return html`<section class="caps" aria-label="Caps">
    <h2>Caps</h2>
    ${value.caps.map((cap) => h(Cap, { key: cap.name, cap, again }))}
  </section>`;
}

/** @param {{ cap: CapShown, again: () => void, key?: string }} props */
function Cap({ cap, again }) {
  const current = cap.buckets.filter((bucket) => bucket.is_current);
  const more = current.length - MOST_SHOWN;
  const terms = [
    `${amount(cap.unit, cap.limit)}${cap.per.length ? ` for each ${cap.per.join(" and ")}` : ""}`,
    cap.window === "always" ? "" : `a ${cap.window}`,
    cap.filter ? `of ${cap.filter}` : "",
    cap.action === "hold" ? "then held" : "then refused",
  ];
  return html`<div class="cap">
    <h3><span>${cap.name}</span> <span class="soft">${terms.filter(Boolean).join(", ")}</span></h3>
    ${current.length ? null : html`<p class="faint">Nothing is spent yet.</p>`}
    <ul>
      ${current.slice(0, MOST_SHOWN).map((bucket) => h(Bucket, { key: bucket.bucket, cap, bucket, again }))}
    </ul>
    ${more > 0 ? html`<p class="faint">and ${whole(more)} more</p>` : null}
  </div>`;
}

/** @param {{ cap: CapShown, bucket: CapBucket, again: () => void, key?: string }} props */
function Bucket({ cap, bucket, again }) {
  const [wanted, setWanted] = useState(/** @type {string | null} */ (null));
  const name = bucket.values.map((value) => value || "none").join(", ") || bucket.period || cap.name;
  const state = bucket.share >= 1 ? "full" : bucket.share >= WARN_AT ? "near" : "";
  /** @param {Event} event */
  const raise = async (event) => {
    event.preventDefault();
    const { bucket: place, period } = bucket;
    const limit = Number(wanted);
    if (!(await attempt(() => put("/api/caps", { name: cap.name, limit, bucket: place, period })))) return;
    setWanted(null);
    again();
    toast(`${cap.name} is raised to ${amount(cap.unit, limit)}.`);
  };
  return html`<li class=${`cap-line in-row ${state}`}>
    <span class="cut" title=${bucket.label}>${name}</span>
    <meter class="cap-meter" min="0" max="1" value=${Math.min(1, bucket.share)} aria-label=${bucket.label}></meter>
    <span class="number" title=${bucket.reserved ? `${amount(cap.unit, bucket.reserved)} reserved` : null}>
      ${amount(cap.unit, bucket.spent)} of ${amount(cap.unit, bucket.limit)}
    </span>
    ${
      wanted === null
        ? button("Raise", () => setWanted(String(bucket.limit * 2)), { kind: "quiet", name: `Raise ${bucket.label}` })
        : html`<form class="cap-form" onSubmit=${raise}>
            ${textField(wanted, setWanted, {
              label: `New limit in ${cap.unit}`,
              type: "number",
              min: "0",
              step: "any",
              required: true,
            })}
            <button type="submit" class="button">Set</button>
            ${button("Cancel", () => setWanted(null), { kind: "quiet" })}
          </form>`
    }
  </li>`;
}

/** @param {string} unit @param {number} value */
function amount(unit, value) {
  return unit === "dollars" ? money(value) : `${whole(value)} tokens`;
}
