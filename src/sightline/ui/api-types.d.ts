// Written by tools/api_types.py from the values that the server answers with. Do not edit it by hand.

/** Any JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** This server. `places` are the parts of the page that it has. */
export interface About {
  version: string;
  address: string;
  places: ("chat" | "evals" | "traffic")[];
  models: ModelShown[];
  providers: ProviderShown[];
  clients: ClientShown[];
}

/** One thing that the target demands and the source did not say. `pointer` is its place in the target document. */
export interface Addition {
  pointer: string;
  what: string;
  why: string;
  severity: "content" | "identity" | "option";
}

/** What a thing is, what it says, and what stood before it, which only tells equal things apart. */
export interface Anchor {
  kind: string;
  content: string;
  before: string;
}

/** The call that a result answers, and the section that holds it. */
export interface Answered {
  call_id: string;
  name: string;
  arguments: string;
  section: string;
}

/** A person wrote the reply, or changed the tool calls of the one that came. `sha256` is that of the reply that the client gets, folded, as JSON. */
export interface AnsweredFact {
  kind: "answered";
  sha256: string;
}

/** The body was written to a provider; every attempt has the same bytes. Of an attempt after another, `reason` is the code of the failure before it, `detail` what was said of that, and `waited` the seconds in between. */
export interface AttemptStartedFact {
  kind: "attempt";
  number: number;
  provider: string;
  sha256: string;
  reason: string;
  detail: string;
  waited: number;
  model: string;
  dialect: string;
}

/** Several edits as one: all of them or none, and one step to undo. */
export interface BatchOperation {
  op: "batch";
  keep?: "all" | "project" | "session" | null;
  operations: (SetTextOperation | SetOperation | InsertOperation | RemoveOperation | MoveOperation | DeleteOperation | RestoreOperation | DuplicateOperation | SetRoleOperation | SetBodyOperation | BatchOperation | ResetOperation)[];
}

/** One stretch of the budget bar. */
export interface CategoryTokens {
  name: "attachments" | "history" | "options" | "system" | "tools" | "user";
  tokens: number;
  low: number;
  high: number;
}

/** What an edit changes in a view. With `order`, `sections` are only those that changed, and `order` names all. */
export interface Changed {
  id: string;
  state: "cancelled" | "dropped" | "failed" | "finished" | "held" | "received" | "sending";
  body_sha256: string;
  dirty: boolean;
  can_undo: boolean;
  can_redo: boolean;
  validity: Validity;
  tokens: TokensShown;
  sections: Section[];
  order?: string[];
  hold?: HoldShown;
  edit_cost?: EditCost;
  masks?: Outcome[];
}

/** How a client is pointed here: a command that starts it so, or variables to set. */
export interface ClientShown {
  name: string;
  command: string;
  env: { [key: string]: string };
  note: string;
}

/** One line of a structural diff; `before` is None for what was added, `after` for what was removed. */
export interface Compared {
  change: "added" | "changed" | "moved" | "removed" | "same";
  label: string;
  kind: "assistant" | "context" | "developer" | "history" | "options" | "other" | "system" | "thinking" | "tool_call" | "tool_result" | "tools" | "user";
  before: Side | null;
  after: Side | null;
}

/** What became of a hold. */
export interface Decided {
  id: string;
  state: "cancelled" | "dropped" | "failed" | "finished" | "held" | "received" | "sending";
  body_sha256: string;
}

/** Take a section or a part out, with what cannot stand without it; it can be restored. */
export interface DeleteOperation {
  op: "delete";
  keep?: "all" | "project" | "session" | null;
  section: string;
  part?: string | null;
}

/** Two requests, section by section; `prefix` is what is left of the cached prefix, where that can be said. */
export interface Diff {
  against: string;
  items: Compared[];
  prefix: EditCost | null;
}

/** A person, or a rule, refused it; nothing was sent. */
export interface DroppedFact {
  kind: "dropped";
  reason: string;
}

/** A second one of an item of the conversation, behind it. */
export interface DuplicateOperation {
  op: "duplicate";
  keep?: "all" | "project" | "session" | null;
  section: string;
}

/** Tokens that come from the cache, tokens of the cache that are lost, and how many of those the edit lost. `pointer` and `section` are where the prompt stops being that of the request before, `reason` says why. Money is in US dollars, None where the prices are not known. */
export interface EditCost {
  kept_tokens: number;
  broken_tokens: number;
  broken_by_edit: number;
  pointer: string;
  section: string;
  reason: string;
  money: number | null;
  money_by_edit: number | null;
}

/** A person changed the body. */
export interface EditedFact {
  kind: "edited";
  operation: string;
  before: string;
  after: string;
}

/** Whoever asked has gone. */
export interface ExchangeCancelledFact {
  kind: "cancelled";
}

/** It ended in a fault; the rest as in `ExchangeFinished`, as far as an answer had come. */
export interface ExchangeFailedFact {
  kind: "failed";
  code: string;
  message: string;
  hint: string;
  status: number;
  headers: [string, string][];
  sha256: string;
  usage: Usage | null;
  first_byte: number;
  elapsed: number;
}

/** The reply is whole. `status` and `headers` are the provider's, `sha256` is that of its raw body, `tools` are the tools that it calls; `first_byte` and `elapsed` are seconds since the request was received. `warning` is what was wrong with it all the same. */
export interface ExchangeFinishedFact {
  kind: "finished";
  finish: string;
  status: number;
  headers: [string, string][];
  sha256: string;
  model: string;
  usage: Usage | null;
  tools: string[];
  first_byte: number;
  elapsed: number;
  warning: string;
}

/** The whole conversation in place of the reference to a response that the provider keeps. */
export interface ExpandOperation {
  op: "expand";
}

/** What went wrong, and what to do next. */
export interface FaultShown {
  code: string;
  message: string;
  hint: string;
}

/** Where a filter is wrong. `column` counts from 1, and both count as a browser counts letters. */
export interface FilterError {
  message: string;
  column: number;
  length: number;
  hint: string;
}

/** Whether a filter can be read, and what could come next. */
export interface FilterShown {
  ok: boolean;
  error: FilterError | null;
  completions: Offer[];
}

/** One problem and where it is. Errors keep a request from being sent; `inherited` ones the client sent itself. */
export interface Finding {
  pointer: string;
  section: string;
  message: string;
  severity: "error" | "warning";
  inherited: boolean;
  fixes: Fix[];
}

/** What a button says, and the edits that it makes in one step. */
export interface Fix {
  label: string;
  operations: (SetTextOperation | SetOperation | InsertOperation | RemoveOperation | MoveOperation | DeleteOperation | RestoreOperation | DuplicateOperation | SetRoleOperation | SetBodyOperation | BatchOperation | ResetOperation)[];
}

/** A piece of the reply, as it came, and how many seconds after the attempt had started. */
export interface FrameArrivedFact {
  kind: "frame";
  data?: string;
  after: number;
}

/** SHA-256, in hex, of the client's body, of the one that was sent, and of the raw answer. */
export interface Hashes {
  received: string | null;
  sent: string | null;
  reply: string | null;
}

/** It waits for a person: the whole request, or the tool calls of its reply. */
export interface HeldFact {
  kind: "held";
  phase: "request" | "tool_calls";
}

/** What waits for a person: since when, and until when. `client_deadline` is when the client is likely to give up. `queue` are the ids of all that is held, in order of arrival. */
export interface HoldShown {
  phase: "request" | "tool_calls";
  since: number;
  deadline: number | null;
  on_timeout: "drop" | "send";
  client_deadline: number | null;
  queue: string[];
}

/** A new element before a position or at the end (`-`), or a new key. */
export interface InsertOperation {
  op: "insert";
  keep?: "all" | "project" | "session" | null;
  pointer: string;
  value: Json;
}

/** What is held: nothing, the next request, every request, or what the rules say. */
export interface Intercepting {
  mode: "every" | "next" | "off" | "rules";
}

/** `at` is when it was received; `status` what the client got; token counts are the provider's own. `previous` is the exchange whose conversation this one continues; `is_side` marks a client's errand (a title, a router). */
export interface Line {
  id: string;
  at: number;
  state: "cancelled" | "dropped" | "failed" | "finished" | "held" | "received" | "sending";
  dialect: string;
  provider: string;
  model: string;
  session: string;
  client?: string;
  path?: string;
  status: number | null;
  finish?: string;
  fault?: string;
  message?: string;
  is_stream?: boolean;
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cost?: number;
  losses?: number;
  attempts?: number;
  tools?: string[];
  first_byte?: number;
  elapsed?: number;
  origin?: string;
  previous?: string;
  is_side?: boolean;
  title?: string;
}

/** One thing of the source that the target does not say. `pointer` is its place in the source document. `content` is something that the model or the reader would have seen, `option` a setting, `identity` an id or bookkeeping that means nothing elsewhere. */
export interface Loss {
  pointer: string;
  what: string;
  why: string;
  severity: "content" | "identity" | "option";
}

/** One edit that stays. `name` is the session or project that it is for. `anchor` is the section that it was made on, as the client sends it, and `part` the part; a strip has neither. */
export interface Mask {
  id?: string;
  scope?: "all" | "project" | "session";
  name?: string;
  kind: "delete" | "set_text" | "strip";
  anchor?: Anchor | null;
  part?: Anchor | null;
  text?: string | null;
  strip?: Strip | null;
  label?: string;
  created?: number;
}

/** A model that can be asked for. */
export interface ModelShown {
  id: string;
  provider: string;
  context_window: number | null;
}

/** Take a value out and put it at `pointer`, which is read after it is gone. */
export interface MoveOperation {
  op: "move";
  keep?: "all" | "project" | "session" | null;
  from: string;
  pointer: string;
}

/** What could stand in place of the term at the cursor, which begins at `from`. */
export interface Offer {
  text: string;
  label: string;
  help: string;
  from: number;
}

/** What became of a mask on one request; `why` says what kept it from being applied. */
export interface Outcome {
  mask: string;
  outcome: "ambiguous" | "applied" | "missing" | "refused";
  section: string;
  why: string;
}

/** A provider, and why it cannot be asked where it cannot. */
export interface ProviderShown {
  name: string;
  ready: boolean;
  why: string;
}

/** A client, or one of our own callers, asked. `sha256` is that of the body after content decoding. `session` labels the traffic, `client` is the program as it calls itself, `origin` the exchange that this one replays. `headers` are the client's without credentials. */
export interface ReceivedFact {
  kind: "received";
  dialect: string;
  model: string;
  sha256: string;
  session: string;
  client: string;
  path: string;
  is_stream: boolean;
  headers: [string, string][];
  origin: string;
}

/** Forward again by one step that was undone. */
export interface RedoOperation {
  op: "redo";
  keep?: "all" | "project" | "session" | null;
}

/** A person let it go, having seen the body with this hash. */
export interface ReleasedFact {
  kind: "released";
  sha256: string;
}

/** Take a value out for good; only undo brings it back. */
export interface RemoveOperation {
  op: "remove";
  keep?: "all" | "project" | "session" | null;
  pointer: string;
}

/** A reply folded to one value, how its raw text begins, and how many events it told. `by_hand`: the client got what a person wrote or changed, which is `reply`. */
export interface ReplyShown {
  reply: { [key: string]: Json } | null;
  raw: string;
  events: number;
  by_hand: boolean;
}

/** Back to the document as it came; this too can be undone. */
export interface ResetOperation {
  op: "reset";
  keep?: "all" | "project" | "session" | null;
}

/** Bring back what a deletion took. */
export interface RestoreOperation {
  op: "restore";
  keep?: "all" | "project" | "session" | null;
  section: string;
  part?: string | null;
}

/** What happens to whatever the filter takes. Without `timeout_s` a hold has no limit. */
export interface Rule {
  filter?: string;
  action?: "drop" | "hold" | "pass";
  phase?: "request" | "tool_calls";
  once?: boolean;
  timeout_s?: number | null;
  on_timeout?: "drop" | "send";
}

/** One item of the conversation, the system prompt, the tools or the options. `text` is what `set_text` without a part replaces. A deleted section keeps its old place in the list and has no pointer. `tokens` is filled in by whoever counts. */
export interface Section {
  id: string;
  kind: "assistant" | "context" | "developer" | "history" | "options" | "other" | "system" | "thinking" | "tool_call" | "tool_result" | "tools" | "user";
  role: string;
  label: string;
  pointer: string;
  text: string;
  editable: boolean;
  deleted: boolean;
  parts: SectionPart[];
  category: "attachments" | "history" | "options" | "system" | "tools" | "user";
  tokens: Tokens | null;
  answers: Answered[];
  reason: string;
  has_cache_mark: boolean;
}

/** One piece of a section. `reason` says why it cannot be edited; a deleted part has no place and so no pointer. `is_json`: its text is JSON on the wire, not a string, so that only JSON can take its place. */
export interface SectionPart {
  id: string;
  type: "audio" | "cache_breakpoint" | "document" | "image" | "opaque" | "option" | "refusal" | "text" | "thinking" | "tool" | "tool_call" | "tool_result";
  pointer: string;
  text: string;
  editable: boolean;
  deleted: boolean;
  call_id: string;
  name: string;
  reason: string;
  media_type: string;
  url: string;
  tokens: number | null;
  is_json: boolean;
}

/** Another document, sent exactly as it is written here. */
export interface SetBodyOperation {
  op: "set_body";
  keep?: "all" | "project" | "session" | null;
  body: string;
}

/** Another value in the place of one that is there. */
export interface SetOperation {
  op: "set";
  keep?: "all" | "project" | "session" | null;
  pointer: string;
  value: Json;
}

/** Another speaker for an item of the conversation; `role` is a canonical role. */
export interface SetRoleOperation {
  op: "set_role";
  keep?: "all" | "project" | "session" | null;
  section: string;
  role: string;
}

/** Another text for a section, spread over its text parts, or for one part of it. */
export interface SetTextOperation {
  op: "set_text";
  keep?: "all" | "project" | "session" | null;
  section: string;
  part?: string | null;
  text: string;
}

/** A section, or one tool or option of it, as it is in one of the two. */
export interface Side {
  section: string;
  text: string;
  part: string;
  pointer: string;
}

/** Which things go: results or thinking older than so many turns of the user, or the tool of this name. */
export interface Strip {
  class: "thinking" | "tool" | "tool_results";
  older_than?: number;
  tool?: string;
}

/** The conversation that an exchange belongs to; `previous` is the exchange that it continues. */
export interface Thread {
  previous: string;
  title: string;
  is_side: boolean;
}

/** How many tokens, likely and at the ends of the band. */
export interface Tokens {
  tokens: number;
  low: number;
  high: number;
}

/** The provider's own counts, where they are there, and the estimate with its band. */
export interface TokensShown {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  estimate?: number;
  low?: number;
  high?: number;
  how?: string;
  window?: number;
  reserve?: number;
  categories?: CategoryTokens[];
}

/** What a view has beyond that: all that happened, and what hangs together with it. */
export interface Told {
  losses?: Loss[];
  additions?: Addition[];
  hashes?: Hashes;
  facts?: NotedFact[];
  replays?: string[];
  thread?: Thread;
  fault?: FaultShown;
}

/** The body was put into another dialect; `losses` is how much of it was not carried, `report` what. */
export interface TranslatedFact {
  kind: "translated";
  dialect: string;
  sha256: string;
  losses: number;
  report: Loss[];
  additions: Addition[];
}

/** Back by one step. */
export interface UndoOperation {
  op: "undo";
  keep?: "all" | "project" | "session" | null;
}

/** `input_tokens` is the whole prompt: cached and cache-written tokens are parts of it. `reasoning_tokens` are part of `output_tokens`. `extras` are the provider's finer counts, `at` their place. */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  at?: string;
  extras?: { [key: string]: Json };
}

/** `ok` where nothing keeps the draft from being sent. */
export interface Validity {
  ok: boolean;
  problems: Finding[];
}

export type Operation = SetTextOperation | SetOperation | InsertOperation | RemoveOperation | MoveOperation | DeleteOperation | RestoreOperation | DuplicateOperation | SetRoleOperation | SetBodyOperation | BatchOperation | ResetOperation | UndoOperation | RedoOperation | ExpandOperation;

export type Fact = ReceivedFact | TranslatedFact | HeldFact | EditedFact | ReleasedFact | DroppedFact | AnsweredFact | AttemptStartedFact | FrameArrivedFact | ExchangeFinishedFact | ExchangeFailedFact | ExchangeCancelledFact;

/** A fact with its number and time. The `data` of a frame is in base64, and left out where `frames=0` was asked for. */
export type NotedFact = Fact & { n: number; at: number; exchange?: string; size?: number; fault?: FaultShown };

/** One exchange as the page opens it. */
export type View = Omit<Line, keyof Changed | keyof Told> &
  Changed &
  Required<Omit<Told, "fault">> &
  Pick<Told, "fault">;

/** What every refusal is. */
export interface Refusal {
  error: { code: string; message: string; hint: string };
}
