// @ts-check
/** Kept edits: what is applied to later requests, what became of each here, and stripping by class. */

import { get, put } from "../../kit/api.js";
import { button } from "../../kit/button.js";
import { countOf } from "../../kit/core/format.js";
import { selectField, textField } from "../../kit/fields.js";
import { Icon } from "../../kit/icon.js";
import { PanelHead } from "../../kit/notices.js";
import { attempt, toast } from "../../kit/toast.js";
import { h, html, useEffect, useState } from "../../vendor/preact.js";

/** @import { Desk } from "./desk.js" */
/** @import { CacheEdit, Hunk, Mask as Stored, Strip as Rule } from "../../api-types.d.ts" */
/**
 * A mask with what became of it so far.
 * @typedef {Stored & { applied?: number, missed?: number, misses?: number, last_exchange?: string | null }} Mask
 */

export const SCOPES = /** @type {Record<string, string>} */ ({
  session: "session",
  project: "project",
  all: "everywhere",
});
const OUTCOMES = /** @type {Record<string, string>} */ ({
  applied: "applied here",
  missing: "its section is not in this request",
  ambiguous: "several sections match",
  refused: "refused",
});

/** @param {{ desk: Desk, onClose: () => void }} props */
export function Masks({ desk, onClose }) {
  const [masks, setMasks] = useState(/** @type {Mask[] | null} */ (null));
  const [problem, setProblem] = useState("");
  const view = desk.view.value;
  const outcomes = new Map((view?.masks ?? []).map((each) => [each.mask, each]));
  // An edit that is kept makes a mask, and undo takes it away again.
  const kept = (view?.kept ?? []).join(" ");
  useEffect(() => {
    get("/api/masks").then(
      (answer) => setMasks(answer),
      (error) => setProblem(error.message),
    );
  }, [kept]);
  const save = (/** @type {Mask[]} */ wanted) => attempt(async () => setMasks(await put("/api/masks", wanted)));
  const remove = async (/** @type {Mask} */ mask) => {
    const before = masks ?? [];
    if (await save(before.filter((each) => each.id !== mask.id)))
      toast("No longer kept.", { action: { label: "Undo", run: () => void save(before) } });
  };
  return html`<div class="masks">
    ${h(PanelHead, {
      title: "Kept edits",
      about: "Kept edits change later requests automatically. They are matched by content, never by position.",
      onClose,
    })}
    ${problem ? html`<p class="bad pad" role="alert">${problem}</p>` : null}
    ${masks === null && !problem ? html`<p class="faint pad">Loading…</p>` : null}
    ${
      masks &&
      !masks.length &&
      html`<div class="empty">
        <p>No edits are kept.</p>
        <p class="soft">While a request is held, choose “Keep edits…” before or after you edit it.</p>
      </div>`
    }
    <ul class="mask-list">
      ${(masks ?? []).map((mask, index) => {
        const outcome = outcomes.get(mask.id ?? "");
        return html`<li key=${mask.id ?? index} class="mask in-row">
          <span class="chip">${SCOPES[mask.scope ?? "session"] ?? mask.scope}</span>
          ${mask.name ? html`<code class="cut">${mask.name}</code>` : null}
          <span class="mask-what">${describeMask(mask)}</span>
          <span class="card-gap"></span>
          ${
            outcome &&
            html`<span class=${`outcome ${outcome.outcome}`} title=${outcome.why ?? ""}>
              ${OUTCOMES[outcome.outcome] ?? outcome.outcome}
            </span>`
          }
          ${button("Stop", () => void remove(mask), { kind: "quiet", name: `Stop: ${describeMask(mask)}` })}
        </li>`;
      })}
    </ul>
    ${masks ? h(Strip, { session: view?.session ?? "", onAdd: (mask) => save([...masks, mask]) }) : null}
  </div>`;
}

/** @param {Hunk[]} hunks */
function describeHunks(hunks) {
  const cut = (/** @type {string} */ text) => (text.length > 40 ? `${text.slice(0, 40)}…` : text);
  const words = hunks
    .slice(0, 2)
    .map((hunk) => (hunk.old ? `“${cut(hunk.old)}” → “${cut(hunk.new ?? "")}”` : `adds “${cut(hunk.new ?? "")}”`));
  return `${words.join(", ")}${hunks.length > 2 ? ` and ${hunks.length - 2} more` : ""}` || "as it came";
}

/** @param {CacheEdit} edit */
function describeCacheEdit(edit) {
  const words = (edit.spans ?? []).map(
    (span) => `“${(span.before ?? "").slice(-24)}…${(span.after ?? "").slice(0, 24)}”`,
  );
  const where = `${edit.part || edit.section}: ${words.join(", ")}`;
  const actions = {
    freeze: `freeze words in ${where}`,
    strip: `leave out words in ${where}`,
    move: `move words to the end of the prompt from ${where}`,
    order: "keep the order of the tools",
    option: `keep the value of ${edit.pointer}`,
    mark: edit.ttl ? `ask for a lifetime of ${edit.ttl} in cache marks` : "set cache marks",
  };
  return `${actions[edit.action]} (for the cache)`;
}

/** What a mask changes, in words. @param {Mask} mask */
export function describeMask(mask) {
  if (mask.kind === "strip" && mask.strip) {
    const { class: what, older_than: age, tool } = mask.strip;
    if (what === "thinking") return "leave out all thinking";
    if (what === "tool") return `leave out the tool ${tool}`;
    return `leave out tool results older than ${countOf(age ?? 0, "turn")}`;
  }
  if (mask.kind === "cache" && mask.cache) return describeCacheEdit(mask.cache);
  if (mask.kind === "patch")
    return `change ${mask.label || `a ${mask.anchor?.kind ?? ""} section`}: ${describeHunks(mask.hunks ?? [])}`;
  const words = mask.label || (mask.text ? `“${mask.text.slice(0, 90)}${mask.text.length > 90 ? "…" : ""}”` : "");
  const where = typeof mask.anchor === "object" && mask.anchor?.kind ? `${mask.anchor.kind} section` : "section";
  return mask.kind === "delete" ? `delete a ${where} ${words}` : `another text for a ${where}: ${words}`;
}

const STRIPPED = /** @type {const} */ ([
  ["tool_results", "old tool results"],
  ["thinking", "all thinking"],
  ["tool", "one tool"],
]);
const PLACES = /** @type {const} */ ([
  ["session", "in this session"],
  ["project", "in this project"],
  ["all", "everywhere"],
]);

/** @param {{ session: string, onAdd: (mask: Mask) => Promise<boolean> }} props */
function Strip({ session, onAdd }) {
  const [what, setWhat] = useState(/** @type {Rule["class"]} */ ("tool_results"));
  const [age, setAge] = useState(5);
  const [tool, setTool] = useState("");
  const [scope, setScope] = useState(/** @type {NonNullable<Mask["scope"]>} */ (session ? "session" : "all"));
  const project = session.includes("@") ? session.slice(session.lastIndexOf("@") + 1) : "";
  const names = { session, project, all: "" };
  const scopes = PLACES.filter(([place]) => place === "all" || names[place]);
  const add = () => {
    const strip =
      what === "tool_results"
        ? { class: what, older_than: age }
        : what === "tool"
          ? { class: what, tool }
          : { class: what };
    void onAdd({ scope, name: names[scope], kind: "strip", strip });
  };
  return html`<form
    class="strip in-row boxed"
    aria-label="Leave out by class"
    onSubmit=${(/** @type {Event} */ event) => (event.preventDefault(), add())}
  >
    <b>Leave out</b>
    ${selectField(what, setWhat, STRIPPED, { label: "What" })}
    ${
      what === "tool_results" &&
      html`<label class="check">
        older than ${textField(age, (value) => setAge(Number(value)), {
          kind: "number-field",
          type: "number",
          min: "0",
          max: "999",
        })} ${age === 1 ? "turn" : "turns"}
      </label>`
    }
    ${what === "tool" && textField(tool, setTool, { label: "Tool", placeholder: "name of the tool", required: true })}
    ${selectField(scope, setScope, scopes, { label: "Where" })}
    <button type="submit" class="button">${h(Icon, { name: "plus" })}Keep</button>
  </form>`;
}
