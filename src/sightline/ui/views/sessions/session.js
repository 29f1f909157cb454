// @ts-check
/** A session: one row a turn, what filled its context and what it cost, with the requests that each turn caused. */

import { get, onKinds } from "../../kit/api.js";
import { button, iconButton } from "../../kit/button.js";
import { CacheAdviceList } from "../../kit/cache-advice.js";
import { literal, term } from "../../kit/core/filter.js";
import {
  aboutCosts,
  clientName,
  costOf,
  countOf,
  duration,
  money,
  short,
  stamp,
  sumOfCosts,
  when,
  whole,
} from "../../kit/core/format.js";
import { hashOf } from "../../kit/core/routes.js";
import { Icon } from "../../kit/icon.js";
import { useShortcuts } from "../../kit/keyboard.js";
import { toTraffic } from "../../kit/navigation.js";
import { figure, Unloaded } from "../../kit/notices.js";
import { followTogether, useResource } from "../../kit/resource.js";
import { h, html, useEffect, useState } from "../../vendor/preact.js";
import { Forget, ofSession } from "../traffic/forget.js";
import { Share } from "../traffic/share.js";
import {
  AT_ONCE,
  ENDED,
  allIds,
  allTurns,
  colourOf,
  growth,
  mainTurns,
  mostTokens,
  rowsOf,
  threadWords,
} from "./core/session.js";

/** @import { CacheBreak, SessionShown, SessionTurn, TurnDetails } from "../../api-types.d.ts" */
/** @import { Row } from "./core/session.js" */

const FOLLOWED = new Set(["received", ...ENDED]);
/** Facts within so many milliseconds are asked for together. */
const TOGETHER = 400;

/** Read it again when requests have arrived or ended. */
const follow = followTogether((changed) => onKinds(FOLLOWED, changed), TOGETHER, { isAtRest: true });

/** @param {{ name: string, key?: string }} props */
export function Session({ name }) {
  const path = /** @type {`/api/sessions/${string}`} */ (`/api/sessions/${encodeURIComponent(name)}`);
  const { value: session, trouble, again } = useResource(path, follow);
  const details = useDetails(session);
  useShortcuts("Session", [{ keys: "escape", label: "Back", run: toTraffic }]);
  if (session) return h(SessionPage, { session, details });
  return html`<main class="session" aria-label="Session">
    ${
      trouble
        ? h(Unloaded, {
            title: trouble.status === 404 ? "This session is not on record" : "The session could not be loaded",
            lines: [trouble.message, trouble.hint],
            ways: html`${button("Back to traffic", toTraffic, { kind: "primary" })}
              ${button("Try again", again)}`,
          })
        : html`<p class="faint pad" role="status">Loading…</p>`
    }
  </main>`;
}

/**
 * What a look at each body tells, as it arrives; a turn that has not ended is looked at again.
 * @param {SessionShown | null} session
 * @returns {ReadonlyMap<string, TurnDetails>}
 */
function useDetails(session) {
  const [known, setKnown] = useState(/** @type {ReadonlyMap<string, TurnDetails>} */ (new Map()));
  useEffect(() => {
    if (!session) return undefined;
    const stopping = new AbortController();
    const turns = allTurns(session.threads);
    const wanted = turns.map((turn) => turn.id).filter((id) => !known.has(id));
    const running = new Set(turns.flatMap((turn) => (ENDED.has(turn.state) ? [] : [turn.id])));
    void (async () => {
      for (let at = 0; at < wanted.length && !stopping.signal.aborted; at += AT_ONCE) {
        const ids = wanted.slice(at, at + AT_ONCE).join(",");
        const found = await get(`/api/turns?ids=${encodeURIComponent(ids)}`, { signal: stopping.signal }).catch(
          () => null, // the rows stay without their calls; the next change of the session asks again
        );
        if (stopping.signal.aborted || !found) return;
        const ended = found.turns.filter((/** @type {TurnDetails} */ each) => !running.has(each.id));
        setKnown((before) => new Map([...before, ...ended.map((each) => /** @type {const} */ ([each.id, each]))]));
      }
    })();
    return () => stopping.abort();
  }, [session]);
  return known;
}

/** @param {{ session: SessionShown, details: ReadonlyMap<string, TurnDetails> }} props */
function SessionPage({ session, details }) {
  const [opened, setOpened] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const rows = rowsOf(session.threads, opened);
  const most = mostTokens(session.threads);
  /** @param {string} key */
  const toggle = (key) => {
    const next = new Set(opened);
    if (!next.delete(key)) next.add(key);
    setOpened(next);
  };
  const breaks = [...details.values()].filter((each) => each.broken).length;
  const isRead = allTurns(session.threads).every((turn) => details.has(turn.id) || !ENDED.has(turn.state));
  return html`<main class="session" aria-label="Session">
    ${h(Head, { session, breaks, isRead })}
    <div class="session-body">
      ${session.is_cut ? html`<p class="soft" role="note">Older requests of this session are left out.</p>` : null}
      <div class="session-drawings">
        ${h(Growth, { session, details })}
        ${h(Spending, { session })}
      </div>
      ${breaks ? h(Misses, { session }) : null}
      <table class="turns figures">
        <thead>
          <tr>
            <th scope="col" class="number">Turn</th>
            <th scope="col">Request and tool calls</th>
            <th scope="col" class="c-tokens">Tokens: cached · new · out</th>
            <th scope="col" class="number">Cost</th>
            <th scope="col" class="number wide-cell">Sum</th>
            <th scope="col" class="number wide-cell">Time</th>
            <th scope="col" class="number wide-cell">At</th>
          </tr>
        </thead>
        <tbody>
          ${rows.map((row) => h(TableRow, { key: row.key, row, most, details, onToggle: toggle }))}
        </tbody>
      </table>
    </div>
  </main>`;
}

/** @param {{ session: SessionShown, breaks: number, isRead: boolean }} props */
function Head({ session, breaks, isRead }) {
  const share = session.input_tokens ? Math.round((100 * session.cached_tokens) / session.input_tokens) : 0;
  const [isSharing, setSharing] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const all = {
    wanted: session.session ? ofSession(session.session) : { exchanges: allIds(session.threads) },
    what: session.session ? `session ${session.session}` : "this conversation",
  };
  const requests = hashOf({ view: "traffic", filter: term("session", literal(session.session)) });
  return html`<header class="session-head">
    <div class="session-title in-row">
      ${iconButton("back", "Back to traffic", toTraffic, { kind: "back", title: "Back to traffic (Esc)" })}
      <h1 class="cut" title=${session.session || session.key}>
        ${session.session || session.threads[0]?.title || "Conversation"}
      </h1>
      <span class="soft cut">${[clientName(session.client), ...session.models].filter(Boolean).join(" · ")}</span>
      ${session.session ? html`<a class="button quiet" href=${requests}>Show in Traffic</a>` : null}
      ${button("Share…", () => setSharing(true), { kind: "quiet", icon: "share" })}
      ${iconButton("trash", "Delete the session", () => setDeleting(true))}
      ${isSharing ? h(Share, { ...all, onClose: () => setSharing(false) }) : null}
      ${isDeleting ? h(Forget, { ...all, onClose: () => setDeleting(false), onGone: toTraffic }) : null}
    </div>
    <dl class="session-totals">
      ${figure("Turns", whole(session.turns), countOf(session.requests, "request"))}
      ${figure("Input", short(session.input_tokens), session.cached_tokens ? `${share} % cached` : "")}
      ${figure("Output", short(session.output_tokens))}
      ${figure("Cost", sumOfCosts(session), aboutCosts(session))}
      ${figure("Cache breaks", isRead || breaks ? whole(breaks) : "…", isRead ? "" : "reading", { isBad: breaks > 0 })}
      ${figure("Lasted", duration(session.ended - session.began), stamp(session.began))}
    </dl>
  </header>`;
}

/** @param {{ session: SessionShown, details: ReadonlyMap<string, TurnDetails> }} props */
function Growth({ session, details }) {
  const turns = mainTurns(session.threads);
  const { names, columns, most } = growth(turns, details);
  const running = new Set(turns.flatMap((turn) => (ENDED.has(turn.state) ? [] : [turn.id])));
  const missing = columns.filter((column) => !details.has(column.id) && !running.has(column.id)).length;
  const known = columns.filter((column) => column.total);
  const words = known.length
    ? `${short(known[0].total)} tokens in the first turn, ${short(known[known.length - 1].total)} in the last`
    : "";
  const latest = known[known.length - 1];
  return html`<figure class="drawing">
    <figcaption>
      <b>Context by turn</b>
      <span class="faint">${missing ? `Reading ${countOf(missing, "turn")}…` : words}</span>
    </figcaption>
    <div class="bars" role="img" aria-label=${`Context by turn: ${words}`}>
      ${columns.map(
        (column, index) => html`<span
          key=${column.id}
          class="bar"
          title=${`Turn ${index + 1}: ${whole(column.total)} tokens, estimated`}
        >
          ${names.map(
            (name, kind) => html`<i
              key=${name}
              class=${`of-${colourOf(name)}`}
              style=${{ height: `${most ? (100 * column.tokens[kind]) / most : 0}%` }}
            ></i>`,
          )}
        </span>`,
      )}
    </div>
    <ul class="legend">
      ${names.map(
        (name, kind) => html`<li key=${name}>
          <i class=${`of-${colourOf(name)}`} aria-hidden="true"></i>
          ${name}
          <span class="faint number">${latest ? short(latest.tokens[kind]) : ""}</span>
        </li>`,
      )}
    </ul>
  </figure>`;
}

/** @param {{ session: SessionShown }} props */
function Spending({ session }) {
  const turns = mainTurns(session.threads);
  const most = turns.length ? turns[turns.length - 1].total : 0;
  if (!most) return null;
  const words = `${money(most)} after ${countOf(turns.length, "turn")}`;
  return html`<figure class="drawing">
    <figcaption><b>Cost so far</b><span class="faint">${words}</span></figcaption>
    <div class="bars" role="img" aria-label=${`Cost so far: ${words}`}>
      ${turns.map((turn, index) => {
        const own = turn.total - (index ? turns[index - 1].total : 0);
        /** @param {number} dollars */
        const height = (dollars) => ({ height: `${(100 * dollars) / most}%` });
        return html`<span
          key=${turn.id}
          class="bar"
          title=${`Turn ${index + 1}: ${money(own)}, ${money(turn.total)} so far`}
        >
          <i class="of-own" style=${height(own)}></i>
          <i class="of-before" style=${height(turn.total - own)}></i>
        </span>`;
      })}
    </div>
    <ul class="legend">
      <li><i class="of-own" aria-hidden="true"></i> This turn, with what it caused</li>
      <li><i class="of-before" aria-hidden="true"></i> Turns before</li>
    </ul>
  </figure>`;
}

/** Why the cache missed in all turns together, and what would have helped. @param {{ session: SessionShown }} props */
function Misses({ session }) {
  const { value: report } = useResource(
    `/api/cache?session=${encodeURIComponent(session.session)}`,
    follow,
    session.key,
  );
  const causes = (report?.causes ?? []).filter((each) => each.lost_tokens);
  if (!report || !causes.length || !session.session) return null;
  const answers = report.agreed + report.disagreed;
  const own = answers
    ? `. The provider gives the same reason for ${report.agreed} of ${countOf(answers, "turn")}.`
    : "";
  const price = report.money ? ` (${money(report.money)})` : "";
  return html`<section class="misses" aria-label="Why the cache missed">
    <p>
      <b>Why the cache missed</b> ${" "}
      <span class="soft">
        Lost ${short(report.lost_tokens)} of ${short(report.could_tokens)} tokens that it could have held${price}:${" "}
        ${causes.map((each) => `${each.reason} ${short(each.lost_tokens)}`).join(", ")}${own}
      </span>
    </p>
    ${h(CacheAdviceList, { advice: report.advice })}
  </section>`;
}

/**
 * @param {{ row: Row, most: number, details: ReadonlyMap<string, TurnDetails>, onToggle: (key: string) => void,
 *   key?: string }} props
 */
function TableRow({ row, most, details, onToggle }) {
  if (row.kind === "thread")
    return html`<tr class="thread-row">
      <th scope="rowgroup" colspan="7">Conversation ${row.number} <span class="soft">${row.thread.title}</span></th>
    </tr>`;
  if (row.kind === "fold")
    return html`<tr class="fold-row">
      <td></td>
      <td colspan="6" style=${{ "--depth": row.depth }}>
        <button type="button" class="fold" aria-expanded=${row.isOpen} onClick=${() => onToggle(row.key)}>
          <span class=${`twist ${row.isOpen ? "open" : ""}`}>${h(Icon, { name: "right" })}</span>
          <span class="cut">${threadWords(row.thread)}</span>
          <span class="faint number">
            ${[countOf(row.thread.requests, "request"), money(row.thread.cost || null)].filter(Boolean).join(" · ")}
          </span>
        </button>
      </td>
    </tr>`;
  return h(TurnRow, { row, most, details: details.get(row.turn.id) });
}

/** @param {{ row: Extract<Row, { kind: "turn" }>, most: number, details: TurnDetails | undefined }} props */
function TurnRow({ row, most, details }) {
  const { turn, number, depth } = row;
  const calls = details?.calls.length ? details.calls : turn.tools;
  const href = hashOf({ view: "request", id: turn.id, tab: "sections" });
  const isBad = turn.state === "failed" || turn.status >= 400;
  return html`<tr class=${depth ? "turn is-below" : "turn"}>
    <td class="number"><a href=${href} aria-label=${`Turn ${number}`}>${number}</a></td>
    <th scope="row" style=${{ "--depth": depth }}>
      <div class="what">
        ${row.label ? html`<a class="asked cut" href=${href} title=${row.label}>${row.label}</a>` : null}
        ${calls.map((words, index) => html`<span key=${index} class="call cut" title=${words}>${words}</span>`)}
        ${!row.label && !calls.length ? html`<a class="soft" href=${href}>continues</a>` : null}
        ${isBad ? html`<span class="bad">${turn.fault.replaceAll("_", " ") || turn.status}</span>` : null}
        ${!ENDED.has(turn.state) ? html`<span class="soft">${turn.state}…</span>` : null}
        ${details?.broken ? h(CacheBreakLink, { id: turn.id, broken: details.broken }) : null}
      </div>
    </th>
    <td class="c-tokens">${h(Tokens, { turn, most })}</td>
    <td class="number">${costOf(turn)}</td>
    <td class="number wide-cell soft">${turn.cost == null && !turn.total ? "" : money(turn.total)}</td>
    <td class="number wide-cell">${duration(turn.elapsed)}</td>
    <td class="number wide-cell faint" title=${stamp(turn.at)}>${when(turn.at, Date.now() / 1000)}</td>
  </tr>`;
}

/** Opens the differences from the turn before, at the cause. @param {{ id: string, broken: CacheBreak }} props */
function CacheBreakLink({ id, broken }) {
  const words = broken.kind === "changed" ? "cache broke" : "cache missed";
  const price = broken.money ? `, ${money(broken.money)}` : "";
  return html`<a
    class="broken"
    href=${hashOf({ view: "request", id, tab: "diff", against: broken.previous || "previous" })}
    title=${`${broken.reason}: ${whole(broken.tokens)} tokens not cached${price}, ${whole(broken.kept)} cached`}
  >
    ${h(Icon, { name: "warn" })}${words} <span class="number">${short(broken.tokens)}</span>
    <span class="reason cut">${broken.reason}</span>
  </a>`;
}

/** @param {{ turn: SessionTurn, most: number }} props */
function Tokens({ turn, most }) {
  const { input_tokens: input, cached_tokens: cached, output_tokens: output } = turn;
  if (input == null && output == null) return html`<span class="faint">not counted</span>`;
  const fresh = Math.max(0, (input ?? 0) - (cached ?? 0));
  /** @param {number} count */
  const share = (count) => ({ width: `${most ? (100 * count) / most : 0}%` });
  const about = turn.is_estimated ? "~" : "";
  const tip = `${about}${whole(cached ?? 0)} cached, ${whole(fresh)} new, ${whole(output ?? 0)} out`;
  return html`<span class="token-bar" role="img" aria-label=${tip} title=${tip}>
      <i class="cached" style=${share(cached ?? 0)}></i>
      <i class="new" style=${share(fresh)}></i>
      <i class="out" style=${share(output ?? 0)}></i>
    </span>
    <span class="token-words number soft" aria-hidden="true">
      ${about}${cached == null ? "" : `${short(cached)} · `}${short(fresh)} · ${short(output ?? 0)}
    </span>`;
}
