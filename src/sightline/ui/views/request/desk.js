// @ts-check
/** The state of one open exchange: the server's view of it, pending edits, and the actions on it. */

import { get, onAnnounced, onFact, onReconnect, post, stopAll } from "../../kit/api.js";
import { Edits, nameOf } from "../../kit/core/edits.js";
import { countOf } from "../../kit/core/format.js";
import { brokenFields } from "../../kit/json-view.js";
import { toast, toastError } from "../../kit/toast.js";
import { batch, computed, signal } from "../../vendor/preact.js";
import { refreshMasks } from "../interception/kept-edits.js";
import {
  isHeld,
  isOver,
  joinTexts,
  lacksSections,
  mergeView,
  moveOperation,
  problemsBySection,
} from "./core/exchange.js";
import { editsOf } from "./core/selection.js";
import { framesIn } from "./core/timeline.js";

/** @import { Section } from "../../api-types.d.ts" */
/** @import { Fact, View } from "./core/exchange.js" */
/** @import { Operation, Target } from "../../kit/core/edits.js" */
/** @import { ApiError } from "../../kit/api.js" */
/** @import { Signal } from "../../vendor/preact.js" */

const SOON = 80;
/** Where facts may have been left out, it is loaded again at most so often. */
const AGAIN = 1000;

export class Desk {
  /** @param {string} id */
  constructor(id) {
    this.id = id;
    this.path = /** @type {const} */ (`/api/exchanges/${encodeURIComponent(id)}`);
    /** @type {Signal<View | null>} */
    this.view = signal(null);
    /** @type {Signal<ApiError | null>} */
    this.trouble = signal(null);
    this.isBusy = signal(false);
    /** @type {Signal<string>} what an answer is being waited for: send, drop, answer */
    this.doing = signal("");
    /** @type {Signal<Target & { mode?: "text" | "json", isNew?: boolean } | null>} */
    this.editing = signal(null);
    /** Refused texts by target: they stay in the editor. @type {Signal<Map<string, string>>} */
    this.refusals = signal(new Map());
    /**
     * Applies what the open JSON editor has and the document does not; whether it could. Null if there is nothing.
     * @type {(() => Promise<boolean>) | null}
     */
    this.applyOpen = null;
    /**
     * How long the text in the open editor is, for the prediction.
     * @type {Signal<{ name: string, length: number } | null>}
     */
    this.typedLength = signal(null);
    /** @type {Signal<"" | "session" | "project" | "all">} */
    this.keep = signal("");
    /** Whether open editors show what differs from the original. */
    this.isCompared = signal(false);
    /** The sections that are selected. @type {import("../../vendor/preact.js").Signal<ReadonlySet<string>>} */
    this.picked = signal(new Set());
    /** Where a range begins. */
    this.lastPicked = "";
    /** The place that Wire is asked to show. @type {Signal<string>} */
    this.shownPointer = signal("");
    /** Counts what arrived of the reply. */
    this.heard = signal(0);
    /** @type {Signal<Fact[]>} frames without their bytes, as they come */
    this.frames = signal([]);
    /** @type {Map<string, readonly any[]>} */
    let before = new Map();
    this.problems = computed(() => (before = problemsBySection(this.view.value?.validity, before)));
    this.sections = computed(() => this.view.value?.sections ?? []);
    /** The text of each section and part when it was first seen unedited. @type {Map<string, string>} */
    this._originals = new Map();
    /** @type {Promise<void> | null} */
    this._asked = null;
    this._edits = new Edits({
      // `changed` is the hash of the body that is shown: the answer has what differs from it, other pages' edits
      // included.
      post: (operation) =>
        post(`${this.path}/edits?changed=${this.view.peek()?.body_sha256 ?? "0"}`, this._meant(this._kept(operation))),
      answered: (answer, operation) => this._answered(answer, operation),
      refused: (error, operation) => this._refused(/** @type {ApiError} */ (error), operation),
      busy: (busy) => this._isBusyNow(busy),
    });
    /** One value of a tool or an option. @type {(pointer: string, value: unknown) => void} */
    this.setLeaf = (pointer, value) => void this.apply({ op: "set", pointer, value });
    this._stop = () => {};
    this._isClosed = false;
    /** @type {Fact[]} */
    this._arrived = [];
  }

  open() {
    this._stop = stopAll(
      onFact((fact) => this._heardOf(fact)),
      onAnnounced("more", () => this._loadAgain()),
      onReconnect(() => void this.load()),
    );
    void this.load();
  }

  close() {
    void this._edits.flush();
    this._isClosed = true;
    clearTimeout(this._again);
    this._stop();
  }

  async load() {
    const before = this._answers;
    const own = (this._loads += 1);
    try {
      const answer = joinTexts(await get(`${this.path}?frames=0&texts=once`));
      if (this._isClosed || this._edits.isBusy || own < this._loaded) return;
      // An edit was answered meanwhile: this may be how things stood before it.
      if (before !== this._answers) return void this.load();
      this._loaded = own;
      this._take(answer);
      this.trouble.value = null;
    } catch (error) {
      if (!this._isClosed && own > this._loaded) this.trouble.value = /** @type {ApiError} */ (error);
    }
  }

  /** Counts the loads, and the last one that is shown: what an earlier one brings after it is out of date. */
  _loads = 0;
  _loaded = 0;
  /** Counts the edits that were answered. */
  _answers = 0;
  /** Whether the answer to an edit had changes of another page, which are not shown yet. */
  _isForeign = false;

  /** @param {View} answer */
  _take(answer) {
    const old = this.view.value;
    if (lacksSections(old, answer)) {
      void this.load();
      return;
    }
    const view = mergeView(old, answer);
    batch(() => {
      this.view.value = view;
      this.frames.value = (view.facts ?? []).filter((fact) => fact.kind === "frame");
    });
    this._arrived = [];
    if (!isHeld(view)) return;
    if (!view.dirty) this._remember(view);
    // It was edited before it was opened here: the original is fetched once.
    else if (!this._originals.size && !this._asked) void this._askOriginals();
  }

  /** @returns {Promise<void>} */
  _askOriginals() {
    this._asked ??= get(`${this.path}/diff?against=original`).then(
      (answer) => {
        const sections = new Map(this.sections.peek().map((section) => [section.id, section]));
        for (const { before, after, change } of answer.items ?? []) {
          const section = sections.get(after?.section ?? "");
          if (!section) continue;
          if (change !== "same") this._changed.add(section.id);
          // A section with more than text has placeholders in its text, which cannot be restored.
          if (before && after && !after.part && after.text === section.text)
            this._originals.set(section.id, before.text);
        }
        for (const [id, section] of sections) this._seen.set(id, section.text);
        this.view.value = this.view.value && { ...this.view.value };
      },
      () => {},
    );
    return this._asked;
  }

  /** Sections that were edited before this page saw them. @type {Set<string>} */
  _changed = new Set();
  /** The texts that they all had when that was asked. @type {Map<string, string>} */
  _seen = new Map();

  /** @param {View} view */
  _remember(view) {
    for (const section of view.sections ?? []) {
      if (!this._originals.has(section.id)) this._originals.set(section.id, section.text);
      for (const part of section.parts)
        if (!this._originals.has(part.id)) this._originals.set(part.id, part.text ?? "");
    }
  }

  /**
   * The text that a section or part had when it came; null where it is new or not known.
   * @param {Target} target
   * @returns {Promise<string | null>}
   */
  async original(target) {
    const name = nameOf(target);
    if (!this._originals.has(name)) await this._askOriginals();
    return this._originals.get(name) ?? null;
  }

  /** @param {Fact & { exchange?: string }} fact */
  _heardOf(fact) {
    if (fact.exchange !== this.id) return;
    if (fact.kind === "frames") {
      this._arrived.push(...framesIn(/** @type {any} */ (fact)));
      this._later(() => {
        const known = new Set(this.frames.value.map((each) => each.n));
        this.frames.value = [...this.frames.value, ...this._arrived.filter((each) => !known.has(each.n))];
        this._arrived = [];
        this.heard.value++;
      });
      return;
    }
    if (fact.kind === "edited") {
      this._lastEdit = fact.after;
      // Our own edit is answered already, or will be.
      if (this._edits.isBusy || fact.after === this.view.value?.body_sha256) return;
    }
    this._later(() => {
      this.heard.value++;
      void this.load();
    });
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  _again = undefined;

  /** Facts were left out. Those of this exchange may be among them while it has not ended. */
  _loadAgain() {
    if (isOver(this.view.peek())) return;
    this._again ??= setTimeout(() => {
      this._again = undefined;
      this.heard.value++;
      void this.load();
    }, AGAIN);
  }

  /** @param {boolean} busy */
  _isBusyNow(busy) {
    this.isBusy.value = busy;
    // Another page edited it while our own edits were under way.
    if (!busy && this._lastEdit && this._lastEdit !== this.view.peek()?.body_sha256)
      this._later(() => void this.load());
  }

  /** The hash after the last edit that was heard of. */
  _lastEdit = "";

  /** @param {() => void} run */
  _later(run) {
    if (this._next) {
      const before = this._next;
      this._next = () => (before(), run());
      return;
    }
    this._next = run;
    setTimeout(() => {
      const next = this._next;
      this._next = null;
      if (!this._isClosed) next?.();
    }, SOON);
  }

  /** @type {(() => void) | null} */
  _next = null;

  /** @param {Operation} operation @returns {Operation} */
  _kept(operation) {
    const keep = this.keep.value;
    return keep && ["set_text", "set", "delete"].includes(operation.op) ? { ...operation, keep } : operation;
  }

  /** Keep edits from now on, and those that were made so far. @param {"" | "session" | "project" | "all"} scope */
  async keepFor(scope) {
    this.keep.value = scope;
    await this._edits.flush();
    if (scope && this.view.peek()?.can_undo) await this.apply({ op: "keep", scope });
  }

  /** A place in the document is meant in the body that is shown. @param {Operation} operation @returns {Operation} */
  _meant(operation) {
    const shown = this.view.peek()?.body_sha256;
    return shown && "pointer" in operation ? { ...operation, if_sha256: shown } : operation;
  }

  /** @param {View} answer @param {Operation} operation */
  _answered(answer, operation) {
    const name = String(operation.part ?? operation.section ?? "");
    const kept = answer.kept?.length ?? 0;
    if (this.refusals.value.has(name)) this._tellRefusal(name, "");
    this._answers++;
    if (operation.op === "keep")
      toast(`${countOf(kept, "edit")} ${kept === 1 ? "is" : "are"} kept for later requests.`);
    // A mask was made, taken away or brought back without any fact that would tell.
    if (["keep", "undo", "redo", "reset"].includes(operation.op) || this.keep.peek()) refreshMasks();
    if (!answer.order) this._isForeign = true;
    this._take(answer);
  }

  /** @param {ApiError} error @param {Operation} operation */
  _refused(error, operation) {
    const message = [error.message, error.hint].filter(Boolean).join(" ");
    if (operation.op === "set_text") this._tellRefusal(String(operation.part ?? operation.section), message);
    else toastError(error);
    // Nothing is kept, so the button must not say so.
    if (operation.op === "keep") this.keep.value = "";
    if (error.status === 409 || error.status === 404) setTimeout(() => void this.load());
  }

  /** @param {string} name @param {string} message */
  _tellRefusal(name, message) {
    if (!message && !this.refusals.peek().has(name)) return;
    const now = new Map(this.refusals.peek());
    if (message) now.set(name, message);
    else now.delete(name);
    this.refusals.value = now;
  }

  /** @param {Target} target @param {string} text */
  type(target, text) {
    this.typedLength.value = { name: nameOf(target), length: text.length };
    this._edits.type(target, text);
  }

  /** What is typed cannot be sent to the server as it is. @param {Target} target @param {string} why */
  hold(target, why) {
    this._edits.forget(nameOf(target));
    this._tellRefusal(nameOf(target), why);
  }

  /** @param {Operation} operation */
  apply(operation) {
    return this._edits.apply(operation);
  }

  /**
   * Select these sections too; with `isToggled`, those that are selected no longer.
   * @param {readonly string[]} ids
   * @param {{ isToggled?: boolean }} [options]
   */
  pick(ids, { isToggled = false } = {}) {
    const next = new Set(this.picked.peek());
    for (const id of ids) if (!(isToggled && next.delete(id))) next.add(id);
    this.picked.value = next;
    this.lastPicked = ids[ids.length - 1] ?? this.lastPicked;
  }

  unpick() {
    this.picked.value = new Set();
    this.lastPicked = "";
  }

  /**
   * Do something to all that is selected, as one step that one undo takes back. With a `scope`, the edits are made
   * again on later requests.
   * @param {"delete" | "restore" | "strip" | "only"} what
   * @param {"" | "session" | "project" | "all"} [scope]
   */
  applyToPicked(what, scope = this.keep.peek()) {
    const operations = editsOf(this.sections.peek(), this.picked.peek(), what);
    if (!operations.length) return;
    void this.apply({ op: "batch", operations });
    // A step of several edits is kept by what all edits so far have made.
    if (scope && what !== "restore") void this.apply({ op: "keep", scope });
  }

  /** @param {string} id @param {-1 | 1} by */
  move(id, by) {
    const operation = moveOperation(this.sections.peek(), id, by);
    if (operation) void this.apply(operation);
  }

  /** Whether a section differs from what came; unknown counts as no. @param {Section} section */
  isEdited(section) {
    const was = this._originals;
    if (this._seen.size) {
      if (was.has(section.id)) return was.get(section.id) !== section.text;
      return this._changed.has(section.id) || this._seen.get(section.id) !== section.text;
    }
    if (!was.size) return false;
    if (was.get(section.id) !== section.text) return true;
    return section.parts.some((part) => part.deleted || was.get(part.id) !== (part.text ?? ""));
  }

  /** @param {Target & { mode?: "text" | "json", isNew?: boolean }} target */
  edit(target) {
    this.stopEditing();
    this.editing.value = target;
  }

  stopEditing() {
    const before = this.editing.peek();
    void this._edits.flush();
    batch(() => {
      this.typedLength.value = null;
      this.editing.value = null;
      // A text that was refused goes with its editor; the card shows what the document has.
      if (before) this._tellRefusal(nameOf(before), "");
    });
  }

  flush() {
    return this._edits.flush();
  }

  /**
   * Send what is on screen: pending edits are sent first, and the server accepts only the hash that is shown. With
   * `keep` its edits are repeated on later requests.
   * @param {"" | "session" | "project" | "all"} [keep]
   */
  async send(keep = "") {
    await this._do("send", async () => {
      this._isForeign = false;
      // What is in the open editor is on screen too: if the document could not take it, it must not leave without it.
      const [broken] = brokenFields;
      broken?.focus();
      const isApplied = !broken && (!this.applyOpen || (await this.applyOpen()));
      if (!isApplied || !(await this._edits.flush()) || this.refusals.peek().size) {
        toast("Not sent: an edit was refused.", { hint: "Check the marked section.", tone: "bad" });
        return;
      }
      if (this._isForeign) {
        toast("Not sent: it was changed in another page.", { hint: "Check it again, then send it.", tone: "bad" });
        return;
      }
      await post(`${this.path}/release`, {
        body_sha256: this.view.value?.body_sha256 ?? "",
        ...(keep && { keep }),
      });
      this.editing.value = null;
    });
  }

  async drop() {
    await this._do("drop", () => post(`${this.path}/drop`, {}));
  }

  /** @param {unknown} reply @returns {Promise<boolean>} */
  async answer(reply) {
    return this._do("answer", () => post(`${this.path}/answer`, { reply }));
  }

  /** @param {string} name @param {() => Promise<unknown>} act */
  async _do(name, act) {
    if (this.doing.value) return false;
    this.doing.value = name;
    try {
      await act();
      await this.load();
      return true;
    } catch (error) {
      toastError(error);
      await this.load();
      return false;
    } finally {
      this.doing.value = "";
    }
  }

  /** @param {{ model?: string, body?: string }} change @returns {Promise<string>} */
  async replay(change) {
    const { id } = await post(`${this.path}/replay`, change);
    return id;
  }
}

/** The dialect that the document on screen is written in. @param {View | null} view */
export function wireDialect(view) {
  return (view?.facts ?? []).findLast((fact) => fact.kind === "translated")?.dialect ?? view?.dialect ?? "";
}
