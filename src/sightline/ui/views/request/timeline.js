// @ts-check
/** The timeline of an exchange: the hold, the attempts, the first byte, and every piece of the reply. */

import { linkButton } from "../../kit/button.js";
import { useNow } from "../../kit/clock.js";
import { countOf, whole } from "../../kit/core/format.js";
import { checkbox } from "../../kit/fields.js";
import { h, html, useEffect, useMemo, useRef, useState } from "../../vendor/preact.js";
import { columnsOf, duration, sinceRelease, ticks, timeline } from "./core/timeline.js";

/** @import { Desk } from "./desk.js" */
/** @import { Timeline as Drawn } from "./core/timeline.js" */

const LANE = 26;
const LEFT = 128;
const FRAMES = 72;

/** @param {{ desk: Desk }} props */
export function Timeline({ desk }) {
  const view = desk.view.value;
  const frames = desk.frames.value;
  const [isOpen, setOpen] = useState(false);
  const now = useNow(isOpen, 500);
  const facts = useMemo(
    () =>
      [...(view?.facts ?? []).filter((fact) => fact.kind !== "frame"), ...frames].sort(
        (a, b) => a.at - b.at || a.n - b.n,
      ),
    [view?.facts, frames],
  );
  const [isWhole, setWhole] = useState(false);
  const after = useMemo(() => sinceRelease(facts), [facts]);
  const drawn = useMemo(() => timeline(isWhole ? facts : after, now), [facts, after, isWhole, now]);
  useEffect(() => setOpen(drawn?.isOpen ?? false), [drawn?.isOpen]);
  if (!drawn) return html`<div class="empty"><p>Nothing has happened yet.</p></div>`;
  return html`<div class="timeline">
    ${after.length < facts.length && checkbox("With the time that it was held", isWhole, setWhole)}
    ${h(Chart, { drawn })}
    ${h(Log, { drawn })}
  </div>`;
}

/** @param {{ drawn: Drawn }} props */
function Chart({ drawn }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const sized = new ResizeObserver(() => setWidth(Math.max(300, element.clientWidth)));
    sized.observe(element);
    return () => sized.disconnect();
  }, []);
  const left = width < 560 ? 84 : LEFT;
  const room = width - left - 20;
  const x = (/** @type {number} */ at) => left + (at / drawn.span) * room;
  const top = 26;
  const lanes = drawn.stretches.length * LANE;
  const framesTop = top + lanes + 12;
  const hasFrames = drawn.pieces.length > 0;
  const height = framesTop + (hasFrames ? FRAMES + 8 : 0);
  const columns = columnsOf(drawn.pieces, drawn.span, Math.max(20, Math.floor(room / 4)));
  const most = Math.max(1, ...columns);
  const first = drawn.pieces[0];
  const label = drawn.stretches.map((each) => `${each.label} ${duration(each.to - each.from)}`).join(", ");
  return html`<div class="chart" ref=${box}>
    <svg width=${width} height=${height} role="img" aria-label=${`Timeline over ${duration(drawn.span)}: ${label}`}>
      ${ticks(drawn.span, Math.max(2, Math.floor(room / 110))).map(
        (at) => html`<g key=${at} class="chart-tick">
          <line x1=${x(at)} x2=${x(at)} y1="18" y2=${height} />
          <text x=${x(at)} y="12" text-anchor="middle">${duration(at)}</text>
        </g>`,
      )}
      ${drawn.stretches.map((each, index) => {
        const y = top + index * LANE;
        const wide = Math.max(2, x(each.to) - x(each.from));
        const words = duration(each.to - each.from);
        const fits = wide > words.length * 7 + 12;
        return html`<g key=${index} class=${`stretch ${each.kind} ${each.isFailed ? "failed" : ""}`}>
          <text class="chart-label" x="0" y=${y + 15}>${each.label}</text>
          <rect x=${x(each.from)} y=${y + 3} width=${wide} height=${LANE - 9} rx="3">
            <title>${`${each.label}${each.detail ? ` · ${each.detail}` : ""}: ${words}`}</title>
          </rect>
          <text
            class=${fits ? "chart-inside" : "chart-beside"}
            x=${
              fits ? x(each.from) + 6 : x(each.to) + 6 + words.length * 6.5 > width ? x(each.from) - 6 : x(each.to) + 6
            }
            text-anchor=${!fits && x(each.to) + 6 + words.length * 6.5 > width ? "end" : "start"}
            y=${y + 15}
          >
            ${words}
          </text>
        </g>`;
      })}
      ${
        hasFrames &&
        html`<g class="chart-frames">
          <text class="chart-label" x="0" y=${framesTop + 14}>Frames</text>
          <text class="chart-note" x="0" y=${framesTop + 30}>${whole(drawn.pieces.length)}</text>
          ${columns.map((bytes, index) =>
            bytes
              ? html`<rect
                  key=${index}
                  x=${left + (index / columns.length) * room}
                  y=${framesTop + FRAMES - Math.max(2, (bytes / most) * FRAMES)}
                  width=${Math.max(1, room / columns.length - 1)}
                  height=${Math.max(2, (bytes / most) * FRAMES)}
                >
                  <title>${`${whole(bytes)} bytes`}</title>
                </rect>`
              : null,
          )}
          <line class="chart-base" x1=${left} x2=${left + room} y1=${framesTop + FRAMES} y2=${framesTop + FRAMES} />
        </g>`
      }
      ${
        first &&
        html`<g class="chart-first">
          <line x1=${x(first.at)} x2=${x(first.at)} y1="18" y2=${height} />
          <text
            x=${x(first.at) + (x(first.at) > width - 90 ? -4 : 4)}
            text-anchor=${x(first.at) > width - 90 ? "end" : "start"}
            y=${height - FRAMES - 12}
          >
            first byte
          </text>
        </g>`
      }
    </svg>
  </div>`;
}

/** @param {{ drawn: Drawn }} props */
function Log({ drawn }) {
  const [isOpen, setOpen] = useState(false);
  const pieces = drawn.pieces;
  const rows = [
    ...drawn.moments,
    ...drawn.stretches
      .filter((each) => each.kind === "attempt")
      .map((each) => ({
        at: each.from,
        kind: "attempt",
        label: [each.label, each.detail].filter(Boolean).join(" · "),
      })),
    ...(pieces.length
      ? [
          {
            at: pieces[0].at,
            kind: "frame",
            label: `First byte; ${countOf(pieces.length, "frame")}, ${whole(drawn.bytes)} bytes in all`,
          },
        ]
      : []),
    ...(isOpen
      ? pieces.map((piece, index) => ({
          at: piece.at,
          kind: "frame",
          label: `Frame ${index + 1} · ${whole(piece.size)} bytes`,
        }))
      : []),
  ].sort((a, b) => a.at - b.at);
  return html`<div class="chart-log">
    <ol>
      ${rows.map(
        (row, index) => html`<li key=${index} class=${`moment ${row.kind}`}>
          <span class="number faint">${duration(row.at)}</span>
          <i aria-hidden="true"></i>
          <span>${row.label}</span>
        </li>`,
      )}
    </ol>
    ${
      pieces.length > 1 &&
      linkButton(isOpen ? "Hide the frames" : "List every frame", () => setOpen(!isOpen), { isExpanded: isOpen })
    }
  </div>`;
}
