// @ts-check
/** “The record”: where it is, how big it is, and how long what is kept. */

import { get, post, put } from "../../kit/api.js";
import { button, iconButton } from "../../kit/button.js";
import { CopyButton } from "../../kit/copy.js";
import { countOf, room, stamp } from "../../kit/core/format.js";
import { Dialog } from "../../kit/dialog.js";
import { textField } from "../../kit/fields.js";
import { attempt, toast, toastError } from "../../kit/toast.js";
import { h, html, useEffect, useState } from "../../vendor/preact.js";

/** @import { RecordShown, RetentionRule } from "../../api-types.d.ts" */

const SOON = 400;

/** @param {number} count @param {(count: number) => void} run @param {string} label @param {string} [min] */
function countField(count, run, label, min = "0") {
  const read = (/** @type {string} */ text) => run(Math.max(0, Math.floor(Number(text) || 0)));
  return textField(count, read, { label, kind: "number-field", type: "number", min });
}

/** @param {{ onClose: () => void }} props */
export function RecordDialog({ onClose }) {
  const [record, setRecord] = useState(/** @type {RecordShown | null} */ (null));
  useEffect(
    () =>
      void get("/api/record").then(setRecord, (error) => {
        toastError(error);
        onClose();
      }),
    [],
  );
  if (!record)
    return h(Dialog, { title: "The record", onClose, children: html`<p class="soft" role="status">Counting…</p>` });
  return h(Retention, { record, onClose });
}

/** @param {{ record: RecordShown, onClose: () => void }} props */
function Retention({ record, onClose }) {
  const [days, setDays] = useState(record.retention.days);
  const [megabytes, setMegabytes] = useState(record.retention.megabytes);
  const [rules, setRules] = useState(/** @type {readonly RetentionRule[]} */ (record.retention.rules));
  const [isBusy, setBusy] = useState(false);
  const wanted = { days, megabytes, rules: rules.filter((rule) => rule.filter.trim() && rule.days > 0) };
  const going = useGoing(wanted);
  const isChanged = JSON.stringify(wanted) !== JSON.stringify(record.retention);
  const save = async () => {
    setBusy(true);
    const isDone = await attempt(async () => {
      const after = await put("/api/record", wanted);
      const gone = record.exchanges - after.exchanges;
      toast(gone > 0 ? `Saved. ${countOf(gone, "request")} deleted.` : "Saved.");
      onClose();
    });
    if (!isDone) setBusy(false);
  };
  /** @param {number} at @param {Partial<RetentionRule>} change */
  const change = (at, change) => setRules(rules.map((rule, index) => (index === at ? { ...rule, ...change } : rule)));
  const buttons = html`${button("Cancel", onClose)}
    ${button(going ? `Save and delete ${countOf(going, "request")} now` : "Save", () => void save(), {
      kind: "primary",
      isDisabled: !isChanged || isBusy,
    })}`;
  return h(Dialog, {
    title: "The record",
    onClose,
    footer: buttons,
    children: html`<div data-view="traffic"><div class="record stacked">
      <p>
        <b>${countOf(record.exchanges, "request")}</b>, <b>${room(record.bytes)}</b>${
          record.oldest == null ? "" : `, since ${stamp(record.oldest)}`
        }
      </p>
      <p class="record-place wraps">
        <code>${record.place}</code> ${h(CopyButton, { text: record.place, label: "Copy the place" })}
      </p>
      <h3>How long requests are kept</h3>
      ${
        record.is_configured
          ? html`<p class="soft">These values come from the configuration. Saving overrides them.</p>`
          : null
      }
      <label class="check">
        Delete requests older than
        ${countField(days, setDays, "Days")}
        days <span class="soft">(0: keep forever)</span>
      </label>
      <label class="check">
        Delete the oldest requests above
        ${countField(megabytes, setMegabytes, "Megabytes")}
        MB <span class="soft">(0: no limit)</span>
      </label>
      <fieldset>
        <legend class="soft">By filter</legend>
        ${rules.map(
          (rule, index) => html`<div key=${index} class="record-rule in-row">
            ${textField(rule.filter, (filter) => change(index, { filter }), {
              label: `Filter ${index + 1}`,
              kind: "mono",
              placeholder: "session:demo",
              spellcheck: false,
            })}
            <span>after</span>
            ${countField(rule.days, (count) => change(index, { days: count }), `Days of filter ${index + 1}`, "1")}
            <span>days</span>
            ${iconButton("close", `Remove filter ${index + 1}`, () => setRules(rules.filter((_, at) => at !== index)))}
          </div>`,
        )}
        ${button("Add a filter", () => setRules([...rules, { filter: "", days: 7 }]), { kind: "quiet", icon: "plus" })}
      </fieldset>
      <p class="soft">Running requests, chats, runs and evals are not deleted.</p>
    </div></div>`,
  });
}

/**
 * How many requests go at once with these limits, as far as age and filters decide; what is too large goes besides.
 * @param {{ days: number, rules: readonly RetentionRule[] }} wanted
 */
function useGoing({ days, rules }) {
  const [going, setGoing] = useState(0);
  const terms = rules.map((rule) => `(${rule.filter}) & age>${rule.days}d`);
  if (days) terms.push(`age>${days}d`);
  const filter = terms.map((term) => `(${term})`).join(" | ");
  useEffect(() => {
    if (!filter) return void setGoing(0);
    const timer = setTimeout(
      () =>
        void post("/api/forget", { filter, dry_run: true }).then(
          (found) => setGoing(found.exchanges),
          () => setGoing(0), // a filter that is wrong is refused when it is saved
        ),
      SOON,
    );
    return () => clearTimeout(timer);
  }, [filter]);
  return going;
}
