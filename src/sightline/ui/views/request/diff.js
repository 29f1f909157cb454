// @ts-check
/** What differs from the original, from the turn before, or from any other exchange: section by section. */

import { get } from "../../kit/api.js";
import { clientName, money, when } from "../../kit/core/format.js";
import { rowsOf, scan } from "../../kit/core/json.js";
import { checkbox, selectField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { LineDiff } from "../../kit/line-diff.js";
import { LongText, looksLikeJson } from "../../kit/long-text.js";
import { useResource } from "../../kit/resource.js";
import { segmentControl } from "../../kit/segmented.js";
import { h, html, useEffect, useRef, useState } from "../../vendor/preact.js";
import { useCacheTurn } from "./cache-line.js";
import { short } from "./core/budget.js";

/** @import { Desk } from "./desk.js" */
/** @import { Compared, Diff as Answer, EditCost } from "../../api-types.d.ts" */

/**
 * `against` is what the address names; it is opened where the cache broke.
 * @param {{ desk: Desk, against?: string }} props
 */
export function Diff({ desk, against: named }) {
  const view = desk.view.value;
  const before = view?.previous || view?.thread?.previous;
  const usual = view?.dirty || !before ? "original" : "previous";
  const [against, setAgainst] = useState(named === before ? "previous" : named || usual);
  const [answer, setAnswer] = useState(/** @type {Answer | null} */ (null));
  const [problem, setProblem] = useState("");
  const [isAll, setAll] = useState(false);
  useEffect(() => {
    let isThere = true;
    if (against === "other") return undefined;
    void desk
      .flush()
      .then(() => get(`${desk.path}/diff?against=${encodeURIComponent(against)}`))
      .then(
        (found) => isThere && (setAnswer(found), setProblem("")),
        (error) => isThere && (setAnswer(null), setProblem([error.message, error.hint].filter(Boolean).join(" "))),
      );
    return () => void (isThere = false);
  }, [desk, against, view?.body_sha256]);
  const items = answer?.items ?? [];
  const differing = items.filter((item) => item.change !== "same");
  const turn = useCacheTurn(desk.id);
  const isTurnBefore = turn?.previous && turn.previous === (against === "previous" ? before : against);
  // What the provider counted says more than an estimate, and is said above the tabs.
  const prefix = turn && against !== "original" ? null : answer?.prefix;
  const cause = isTurnBefore ? turn.autopsy.lost_tokens && turn.section : prefix?.broken_tokens && prefix.section;
  const isOther = !["original", "previous"].includes(against);
  const pick = (/** @type {string} */ name) => {
    if (name === against) return;
    setAnswer(null);
    setProblem("");
    setAgainst(name);
  };
  return html`<div class="diff">
    <div class="toolbar">
      <span class="soft">Compared with</span>
      ${segmentControl({
        label: "Compared with",
        value: isOther ? "other" : against,
        choices: [
          { value: "original", label: "Original" },
          { value: "previous", label: "Previous turn" },
          { value: "other", label: "Another exchange" },
        ],
        onChange: pick,
      })}
      ${isOther ? h(Others, { own: desk.id, chosen: against === "other" ? "" : against, onChoose: pick }) : null}
      <span class="card-gap"></span>
      ${
        items.length > differing.length &&
        checkbox(`Show the ${items.length - differing.length} that are the same`, isAll, setAll)
      }
    </div>
    <div class="diff-list">
      ${prefix ? h(Prefix, { cost: prefix }) : null}
      ${problem ? html`<div class="empty"><p class="soft">${problem}</p></div>` : null}
      ${!answer && !problem && against !== "other" ? html`<p class="faint pad">Comparing…</p>` : null}
      ${
        answer &&
        !differing.length &&
        html`<div class="empty">
          <p>Nothing differs.</p>
          <p class="soft">${against === "original" ? "What is shown is what the client sent." : ""}</p>
        </div>`
      }
      ${(isAll ? items : differing).map((item, index) =>
        h(Entry, {
          key: `${index}`,
          item,
          isCause: Boolean(cause) && (item.after ?? item.before)?.section === cause,
          isShownFirst: Boolean(named),
        }),
      )}
    </div>
  </div>`;
}

/** @param {{ item: Compared, isCause: boolean, isShownFirst: boolean, key?: string }} props */
function Entry({ item, isCause, isShownFirst }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    const list = /** @type {HTMLElement | null | undefined} */ (place.current?.closest(".diff-list"));
    if (isCause && isShownFirst && list && place.current) list.scrollTop = place.current.offsetTop - list.offsetTop;
  }, [isCause]);
  const [isOpen, setOpen] = useState(item.change !== "same" && item.change !== "moved");
  const before = layOutJson(item.before?.text ?? "");
  const after = layOutJson(item.after?.text ?? "");
  return html`<section
    ref=${place}
    class=${`diff-entry boxed ${item.change}${isCause ? " is-cause" : ""}`}
    aria-label=${`${item.label}: ${item.change}`}>
    <button type="button" class="diff-head bare in-row" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <span class=${isOpen ? "json-arrow open" : "json-arrow"} aria-hidden="true">▸</span>
      <span class=${`chip change ${item.change}`}>${item.change}</span>
      <b class="cut">${item.label}</b>
      ${isCause ? html`<span class="chip cause">the cache broke here</span>` : null}
      <span class="card-gap"></span>
      <span class="faint number">${change(before.length, after.length)}</span>
    </button>
    ${
      !isOpen
        ? null
        : item.change === "changed"
          ? h(LineDiff, { before, after })
          : html`<div class="diff-text">${h(LongText, { text: after || before, isMarkdown: false, lines: 10 })}</div>`
    }
  </section>`;
}

/** JSON on one line is read line by line. @param {string} text */
function layOutJson(text) {
  if (text.includes("\n") || !looksLikeJson(text)) return text;
  const root = scan(text);
  return root
    ? rowsOf(text, root)
        .map((row) => "  ".repeat(row.indent) + text.slice(row.from, row.to))
        .join("\n")
    : text;
}

/** @param {number} before @param {number} after */
function change(before, after) {
  if (before === after) return "";
  const by = after - before;
  return `${by > 0 ? "+" : "−"}${Math.abs(by).toLocaleString("en-US")} characters`;
}

/** @param {{ cost: EditCost }} props */
function Prefix({ cost }) {
  const kept = cost.kept_tokens ?? 0;
  const broken = cost.broken_tokens ?? 0;
  const whole = Math.max(1, kept + broken);
  if (!kept && !broken)
    return html`<div class="prefix is-unknown">
      <p><b>Cached prefix</b> <span class="soft">none: the previous turn left nothing in the cache</span></p>
    </div>`;
  return html`<div class=${broken ? "prefix is-broken" : "prefix"}>
    <p>
      <b>Cached prefix</b> ${
        broken
          ? html`<span class="number">${short(kept)}</span> tokens kept, <span class="number bad">
                ${short(broken)}
              </span> broken
              ${cost.money ? html` (${money(cost.money)})` : null}`
          : html`<span class="number">${short(kept)}</span> tokens kept, nothing broken`
      }
    </p>
    <div class="prefix-bar" role="img" aria-label=${`${kept} tokens kept, ${broken} broken`}>
      <i class="kept" style=${{ width: `${(kept / whole) * 100}%` }}></i>
      <i class="broken" style=${{ width: `${(broken / whole) * 100}%` }}></i>
    </div>
    ${
      cost.reason &&
      html`<p class="soft">
        ${h(Icon, { name: "warn" })}
        ${cost.reason}
        ${cost.pointer ? html` <code>${cost.pointer}</code>` : null}
      </p>`
    }
  </div>`;
}

/** @param {{ own: string, chosen: string, onChoose: (id: string) => void }} props */
function Others({ own, chosen, onChoose }) {
  const { value } = useResource("/api/exchanges?limit=50");
  const lines = (value?.exchanges ?? []).filter((line) => line.id !== own);
  const choices = lines.map((line) => {
    const words = [when(line.at, Date.now() / 1000), line.model, line.session || clientName(line.client)];
    return /** @type {[string, string]} */ ([line.id, words.join(" · ")]);
  });
  return selectField(chosen, (id) => onChoose(id || "other"), [["", "Choose…"], ...choices], {
    label: "Which exchange",
  });
}
