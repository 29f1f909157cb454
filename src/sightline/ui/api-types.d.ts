// Written by tools/api_types.py from the values that the server answers with. Do not edit it by hand.

/** Any JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** This server. `places` are the views of its page, `toolsets` the names of configured toolsets; `workers` is how many processes currently serve clients, `panels` are the tabs that plug-ins add, `formats` the file formats for sharing. `program` is how a shell starts Sightline. */
export interface About {
  version: string;
  address: string;
  places: ("chat" | "evals" | "example" | "runs" | "traffic")[];
  models: ModelShown[];
  providers: ProviderShown[];
  clients: ClientShown[];
  dialects: DialectShown[];
  toolsets: string[];
  workers: number;
  panels: PanelShown[];
  formats: ShareFormat[];
  program: string;
}

/** Something that the target requires and the source does not contain. `pointer` is its place in the target document. */
export interface Addition {
  pointer: string;
  what: string;
  why: string;
  severity: "content" | "identity" | "option";
}

/** A change to the conversation: its kind, what was changed, and why. `pointer` is the place in the original document. */
export interface Amendment {
  kind: "call_left_out" | "id" | "missing_result" | "orphan_result" | "part" | "reply_left_out" | "tool_choice";
  what: string;
  why: string;
  pointer?: string;
}

/** The kind and content of a thing, and the content before it, which only tells equal things apart. A patch written by hand has only the kind. */
export interface Anchor {
  kind: string;
  content: string;
  before: string;
}

/** An answer, complete or so far. `predicted` is the estimate of its prompt, to compare with the counts in `usage`; `cost` is in US dollars. */
export interface AnswerShown {
  blocks: (TextBlock | ThinkingBlock | RefusalBlock | CallBlock | MediaBlock)[];
  text: string;
  citations: CitationShown[];
  finish: string;
  reason: "client_gone" | "interrupted" | "shutdown" | "timeout" | "user" | null;
  is_partial: boolean;
  model: string;
  usage: Usage | null;
  predicted: number | null;
  cost: number | null;
  seconds: number | null;
  exchange: string;
  at: number;
  run: string;
}

/** A person wrote the reply, or changed the tool calls of the one that arrived. `sha256` is the hash of the folded reply that the client gets, as JSON. */
export interface AnsweredFact {
  kind: "answered";
  sha256: string;
}

/** Calls of this tool from this place run without asking if their arguments match the patterns. `words` describes the rule. */
export interface ApprovalShown {
  tool: string;
  place: string;
  arguments: { [key: string]: string };
  words: string;
}

/** May these calls run? `objections` explains why edited arguments cannot be used. */
export interface ApprovePending {
  step: "approve";
  calls: PendingCall[];
  objections: { [key: string]: string };
}

/** The pair of a new question or summary. */
export interface AskedShown {
  pair: string;
}

/** An attached file; `n` is its position, `size` its number of bytes, 0 if they are not here. */
export interface AttachmentShown {
  n: number;
  kind: "audio" | "document" | "image" | "other" | "text";
  name: string;
  media_type: string;
  size: number;
}

/** The body was written to a provider; every attempt has the same bytes. For a retry, `reason` is the code of the previous failure, `detail` its message, and `waited` the seconds in between. `url` is the address, with credentials in its query masked; `headers` are those that Sightline sent, with each credential masked. `key` is the beginning of the hash of the first credential, which only tells keys apart. */
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
  url: string;
  headers: [string, string][];
  key: string;
}

/** Apply several edits as one: all of them or none, and one step to undo. */
export interface BatchOperation {
  op: "batch";
  keep?: "all" | "project" | "session" | null;
  operations: (SetTextOperation | SetOperation | InsertOperation | RemoveOperation | MoveOperation | DeleteOperation | RestoreOperation | DuplicateOperation | SetRoleOperation | SetBodyOperation | BatchOperation | ResetOperation)[];
}

/** A body of a raw exchange has passed through: the request's or the reply's. `sha256` and `size` describe the whole body after content decoding; if `coding` is set, the body was not decoded and they describe the encoded bytes. The first `kept` bytes are recorded, for a request under `kept_sha256`. Without `is_whole` the body was interrupted. */
export interface BodyPassedFact {
  kind: "body";
  of: "reply" | "request";
  sha256: string;
  size: number;
  media_type: string;
  coding: string;
  kept: number;
  kept_sha256: string;
  is_whole: boolean;
}

/** The parts of a body of one kind: how many there are, and how many characters they have. */
export interface BodyShare {
  label: string;
  count: number;
  size: number;
}

/** How a chat planned this request, or what it made of the outcome: one step of a send, in the chat's own terms. May follow the end of the exchange. */
export interface BudgetedFact {
  kind: "budgeted";
  telemetry: { [key: string]: Json };
}

/** What to change, and what it would have saved on those of these turns that had no other cause. `edits` make the change, the one that saves most first; if there are none, only the client can make it. */
export interface CacheAdvice {
  cause: "" | "below_minimum" | "beta" | "cache_key" | "cold_start" | "evicted" | "expired" | "format" | "in_flight" | "key" | "marks_limit" | "marks_missing" | "marks_moved" | "messages" | "model" | "organisation" | "provider" | "settings" | "system" | "tier" | "tools" | "tools_order" | "unknown" | "version";
  section_name: string;
  text: string;
  turns: number;
  saved_tokens: number;
  money: number | null;
  edits: KeepableEdit[];
}

/** What a turn could have read from the cache, what it read, and why not all of it. `also` are other causes that would have broken it too. `pointer` is the place of the first difference in the later document, `offset` the byte in the text there, `before` and `after` the two texts around it. `idle` is the seconds since the previous turn, `lifetime` how many seconds the provider keeps what was lost. `is_estimated`: the provider did not count what could have been read. `money` is in dollars, None if prices are unknown. */
export interface CacheAutopsy {
  cause: "" | "below_minimum" | "beta" | "cache_key" | "cold_start" | "evicted" | "expired" | "format" | "in_flight" | "key" | "marks_limit" | "marks_missing" | "marks_moved" | "messages" | "model" | "organisation" | "provider" | "settings" | "system" | "tier" | "tools" | "tools_order" | "unknown" | "version";
  could_tokens: number;
  read_tokens: number;
  lost_tokens: number;
  money: number | null;
  also: ("" | "below_minimum" | "beta" | "cache_key" | "cold_start" | "evicted" | "expired" | "format" | "in_flight" | "key" | "marks_limit" | "marks_missing" | "marks_moved" | "messages" | "model" | "organisation" | "provider" | "settings" | "system" | "tier" | "tools" | "tools_order" | "unknown" | "version")[];
  pointer: string;
  offset: number | null;
  before: string;
  after: string;
  idle: number | null;
  lifetime: number | null;
  is_estimated: boolean;
}

/** What a turn lost of the tokens that the provider had cached, or would have. `kind`: the prompt changed, or it did not and the provider still read less from its cache. `section` and `pointer` are where the prompt changed since the turn `previous`. */
export interface CacheBreak {
  kind: "changed" | "missed";
  tokens: number;
  kept: number;
  reason: string;
  section: string;
  pointer: string;
  money: number | null;
  cause: "" | "below_minimum" | "beta" | "cache_key" | "cold_start" | "evicted" | "expired" | "format" | "in_flight" | "key" | "marks_limit" | "marks_missing" | "marks_moved" | "messages" | "model" | "organisation" | "provider" | "settings" | "system" | "tier" | "tools" | "tools_order" | "unknown" | "version";
  previous: string;
}

/** What one cause has lost. `money` is the known part, `unpriced` counts the turns for which it is not known. `key` is the day, the client or whatever else causes are summed by. */
export interface CacheCause {
  key: string;
  cause: "" | "below_minimum" | "beta" | "cache_key" | "cold_start" | "evicted" | "expired" | "format" | "in_flight" | "key" | "marks_limit" | "marks_missing" | "marks_moved" | "messages" | "model" | "organisation" | "provider" | "settings" | "system" | "tier" | "tools" | "tools_order" | "unknown" | "version";
  reason: string;
  turns: number;
  lost_tokens: number;
  money: number;
  unpriced: number;
}

/** What is made stable. Text is that of the section with this `index` among those of the kind `section`, counted from 0, or of its part of this name. `names` are the tools in their order; `pointer` and `value` are an option's, where None means that the option is absent; `ttl` is the lifetime that marks request. Without one the marks are placed anew. */
export interface CacheEdit {
  action: "freeze" | "mark" | "move" | "option" | "order" | "strip";
  section?: string;
  index?: number;
  part?: string;
  spans?: FixedSpan[];
  names?: string[];
  pointer?: string;
  value?: Json;
  ttl?: string;
}

/** All turns, the oldest first. `is_cut`: there are more, older ones. `agreed` and `disagreed` count the turns for which the provider reports a reason itself. */
export interface CacheReport {
  session: string;
  could_tokens: number;
  read_tokens: number;
  lost_tokens: number;
  money: number;
  unpriced: number;
  agreed: number;
  disagreed: number;
  is_cut: boolean;
  causes: CacheCause[];
  advice: CacheAdvice[];
  turns: CacheTurn[];
}

/** One turn. `previous` is the turn that it is compared with; `section` is the section where the two begin to differ, `section_name` its label. `provider_reason` is the reason that the provider reports, and `agrees` whether it matches the cause found here; None if the provider reports none. */
export interface CacheTurn {
  exchange: string;
  previous: string;
  at: number;
  model: string;
  client: string;
  input_tokens: number;
  reason: string;
  autopsy: CacheAutopsy;
  section: string;
  section_name: string;
  provider_reason: string;
  provider_tokens: number | null;
  agrees: boolean | null;
}

/** A tool was called; `arguments` is what the model wrote. */
export interface CallBlock {
  type: "call";
  id: string;
  name: string;
  arguments: string;
  result: ResultShown | null;
}

/** The call that a result answers, and the section that holds it. */
export interface CallReference {
  call_id: string;
  name: string;
  arguments: string;
  section: string;
}

/** The result of a call: its text, its JSON, and its number of images and other media. */
export interface CallResult {
  text: string;
  is_error: boolean;
  structured: { [key: string]: Json } | null;
  media: number;
}

/** A call. `arguments` are as the model wrote them; `ran` are those that the tool was given. A call without a `fate` is open; `is_running` then tells whether the tool is running, and `progress` is what it reports. */
export interface CallShown {
  key: string;
  id: string;
  name: string;
  arguments: string;
  ran: Json;
  fate: "answered" | "cancelled" | "cut" | "denied" | "limit" | "ran" | "refused" | null;
  result: CallResult | null;
  is_edited: boolean;
  denied_by: "hook" | "nobody" | "rule" | "user" | null;
  is_running: boolean;
  progress: string;
  repairs: Repair[];
  seconds: number | null;
}

/** One bucket of a cap: its counts for one set of `per` values in one window. Amounts are dollars or tokens. */
export interface CapBucket {
  label: string;
  bucket: string;
  period: string;
  values: string[];
  spent: number;
  reserved: number;
  limit: number;
  share: number;
  is_current: boolean;
}

/** A cap with its buckets, the fullest first. */
export interface CapShown {
  name: string;
  unit: "dollars" | "tokens";
  limit: number;
  filter: string;
  per: string[];
  window: string;
  action: string;
  buckets: CapBucket[];
}

/** All caps. */
export interface CapsShown {
  caps: CapShown[];
}

/** A case on all targets. */
export interface CaseRow {
  case: string;
  group: string;
  tags: string[];
  cells: Cell[];
}

/** One trial of a case, with the fields of a turn; for a live conversation these have the messages of the last turn. `notes` are delivery notes, computed again; `notes_trouble` is why that failed. `is_edited` means that a user edited a request of it; `messages` are as sent in that case too. `source` is the case as its file has it now, null if it cannot be written back, and `source_sha256` that file's hash. `run` is the agent run of a target with tools. */
export interface CaseShown {
  messages: MessageShown[];
  answer: (TextBlock | ThinkingBlock | RefusalBlock | CallBlock | MediaBlock)[];
  verdict: "fail" | "not_graded" | "pass" | "skip" | null;
  score: number | null;
  scores: Score[];
  reason: string;
  exchanges: string[];
  seconds: number | null;
  cost: number | null;
  error: string;
  case: string;
  group: string;
  tags: string[];
  target: string;
  trial: number;
  status: "execution_error" | "not_graded" | "ok" | "quality_failure" | "skipped" | "running" | "waiting";
  criteria: string;
  expected: MessageShown[];
  question: string;
  turns: TurnShown[];
  run: string;
  body_sha256: string;
  place: SuitePlace;
  notes: Note[];
  notes_trouble: string;
  usage: Usage | null;
  finish: string;
  model: string;
  error_code: string;
  cached: boolean;
  at: number;
  source: Json;
  source_sha256: string;
  is_edited: boolean;
}

/** A segment of the budget bar. */
export interface CategoryTokens {
  name: "attachments" | "history" | "options" | "results" | "system" | "tools" | "user";
  tokens: number;
  low: number;
  high: number;
}

/** A case on a target. */
export interface Cell {
  target: string;
  trials: TrialShown[];
}

/** The changed lines of a file before and after the change, with context. `line` is the number of the first. */
export interface ChangeShown {
  line: number;
  before: string;
  after: string;
}

/** What an edit changes in a view. With `order`, `sections` are only the changed ones, and `order` has the ids of all. `kept` are the ids of the masks that edits of this hold have created. */
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
  masks?: MaskOutcome[];
  kept?: string[];
}

/** A chat in the list. `name` is what the user called it; `title` is the name, or the beginning of its first question. `latest` is the time of its last change, and `session` the label of its recorded requests. `found` is the text around the words that were searched for, in the pair `found_in`. */
export interface ChatBrief {
  id: string;
  name: string;
  title: string;
  pairs: number;
  latest: number;
  session: string;
  is_sending: boolean;
  found: string;
  found_in: string;
}

/** One condition that was checked, whether it held, and the evidence. */
export interface Check {
  text: string;
  passed: boolean;
  evidence?: string;
}

/** A source of an answer. */
export interface CitationShown {
  title: string;
  url: string;
  quote: string;
}

/** How to connect a client: a command that starts it, or variables to set. */
export interface ClientShown {
  name: string;
  command: string;
  env: { [key: string]: string };
  note: string;
}

/** What a command did, or would do: the number of pairs, and how the first of them begin. If `confirm`, the user must confirm first. `export` is the address of the file, `compact` has the pairs to summarize, and `ids` those that `:delete` has deleted, so that they can be restored. */
export interface CommandShown {
  command: "compact" | "delete" | "export" | "hud" | "tchange";
  count: number;
  sample: string[];
  needs_force: boolean;
  message: string;
  done: boolean;
  confirm?: boolean;
  hud?: boolean;
  export?: string;
  compact?: string[];
  ids?: string[];
}

/** Two runs compared on their common cases. The first sentence of `said` is the conclusion, or that there is none. `difference` is the mean of the paired differences, `b` minus `a`; `p` is that of the permutation test `test`. `bounds` are the difference if every missing result had gone against `b`, and in its favour. `smallest` is the true difference that these cases would usually show, `needed` how many cases the observed one would take. */
export interface CompareShown {
  a: ComparedSide;
  b: ComparedSide;
  level: number;
  finding: "better" | "cannot_tell" | "nothing" | "worse";
  said: string[];
  mean_a: number | null;
  mean_b: number | null;
  difference: number | null;
  stderr: number | null;
  low: number | null;
  high: number | null;
  p: number | null;
  test: string;
  sign_p: number | null;
  bootstrap: Ends | null;
  wins: number;
  losses: number;
  ties: number;
  pairs: number;
  groups: number;
  gain: number | null;
  smallest: number | null;
  needed: number | null;
  bounds: Ends | null;
  passing: PassShown | null;
  cases: ComparedCase[];
  distributions: Distributions;
  only_a: string[];
  only_b: string[];
  unpaired: string[];
  excluded: Excluded[];
}

/** A line of a structural diff; `before` is None for an addition, `after` for a removal. */
export interface Compared {
  change: "added" | "changed" | "moved" | "removed" | "same";
  label: string;
  kind: "assistant" | "context" | "developer" | "history" | "options" | "other" | "system" | "thinking" | "tool_call" | "tool_result" | "tools" | "user";
  before: Side | null;
  after: Side | null;
}

/** One case on both sides. `is_same_request` and `is_same_answer` say whether they agree; null if unknown. */
export interface ComparedCase {
  case: string;
  group: string;
  a: number;
  b: number;
  difference: number;
  outcome: "loss" | "tie" | "win";
  flip: "" | "now_fails" | "now_passes";
  is_same_request: boolean | null;
  is_same_answer: boolean;
  exchange_a: string;
  exchange_b: string;
  graders: GraderPair[];
}

/** One side of a comparison. */
export interface ComparedSide {
  run: string;
  name: string;
  target: string;
  at: number;
}

/** The tokens of some pairs, and of the summary that would replace them. */
export interface Comparison {
  before: TokenBand;
  after: TokenBand;
}

/** Should this limit be raised? `words` describes it for a person. */
export interface ConfirmPending {
  step: "confirm";
  reached: Reached;
  words: string;
}

/** How many pairs are sent: `predicted` is X, `visible` is Y, and `trimmed` is T of the last send, which had `predicted_then` pairs. `text` is `X / Y`; after a send that left pairs out, `[X-T]/Y`. */
export interface ContextCounter {
  text: string;
  predicted: number;
  visible: number;
  trimmed: number;
  predicted_then: number;
  breakdown: [string, number][];
}

/** The tokens of one kind, in `count` sections or tools. `server` is the MCP server of a tool, if it has one; `results` are the tokens that the results of this tool take. */
export interface ContextRow {
  name: string;
  tokens: number;
  count: number;
  server: string;
  results: number;
}

/** The latest request of a session. `tokens` is the estimated or known size of its prompt, between `low` and `high`; `counted` is the provider's own count. `free` is what would still fit next to the reserve for the reply. */
export interface ContextShown {
  exchange: string;
  session: string;
  client: string;
  model: string;
  tokens: number;
  low: number;
  high: number;
  counted: number | null;
  cached: number | null;
  window: number | null;
  reserve: number | null;
  free: number | null;
  kinds: ContextRow[];
  tools: ContextRow[];
  servers: ContextRow[];
}

/** The request that was sent, section by section. */
export interface ConversationShown {
  sections: Section[];
}

/** The sums of one group. `keys` are its values in the requested order. `cost` is the sum of what is known; `estimated_cost` is the part of it for the `estimated` exchanges, whose tokens are estimates. `unpriced` exchanges have tokens whose cost is not known; `uncounted` ones were answered without a token count, and could not be estimated. `saved` is how much more the tokens from the cache would have cost. */
export interface CostRow {
  keys: string[];
  requests: number;
  failed: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  cost: number;
  saved: number;
  unpriced: number;
  uncounted: number;
  estimated: number;
  estimated_cost: number;
}

/** The groups, the most expensive first but days in order, the sums of all, and the prices of their models. */
export interface CostsShown {
  by: string[];
  rows: CostRow[];
  total: CostRow;
  prices: PriceUsed[];
}

/** Delete a section or a part, with everything that is invalid without it. It can be restored. */
export interface DeleteOperation {
  op: "delete";
  keep?: "all" | "project" | "session" | null;
  section: string;
  part?: string | null;
}

/** What the page needs to know about a dialect. `home` is the provider that its requests go to by default, `label` its name without that provider's. `container` is the field of the messages, `roles` are those that a message can have, `messages` has a new message for each role. */
export interface DialectShown {
  name: string;
  label: string;
  home: string;
  container: string;
  roles: string[];
  messages: { [key: string]: Json };
}

/** A comparison of two requests by section; `prefix` is what remains of the cached prefix, if that is known. */
export interface Diff {
  against: string;
  items: Compared[];
  prefix: EditCost | null;
}

/** The scores of the compared cases on both sides. */
export interface Distributions {
  a: number[];
  b: number[];
}

/** A person, or a rule, refused the request; nothing was sent. */
export interface DroppedFact {
  kind: "dropped";
  reason: string;
}

/** Insert a copy of an item of the conversation after it. */
export interface DuplicateOperation {
  op: "duplicate";
  keep?: "all" | "project" | "session" | null;
  section: string;
}

/** What an edit costs in the cache: tokens that come from the cache, cached tokens that are lost, and how many of those the edit lost. `pointer` and `section` are where the prompt begins to differ from the previous request, `reason` is why. Money is in US dollars, None if the prices are unknown. */
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

/** An interval. */
export interface Ends {
  low: number;
  high: number;
}

/** The size of the next request, and whether its question fits. `line` describes the size for the user; `prompt` is planned for the question alone. */
export interface EstimateShown {
  tokens: number;
  low: number;
  high: number;
  limit: number;
  fits: boolean;
  line: string;
  prompt: number;
}

/** A run as one row. `of` is the number of results it will have, `done` the number it has. */
export interface EvalBrief {
  run: string;
  name: string;
  suite: string;
  at: number;
  state: "ended" | "interrupted" | "running" | "stopped";
  targets: string[];
  cases: number;
  done: number;
  of: number;
  summary: TargetFigures[];
}

/** A whole run. `version` counts its facts, `why` is how it ended. `is_here` means that this server drives it and can stop it. `file_sha256` is the hash of the suite's file at the start. */
export interface EvalShown {
  run: string;
  name: string;
  suite: string;
  at: number;
  state: "ended" | "interrupted" | "running" | "stopped";
  targets: string[];
  cases: number;
  done: number;
  of: number;
  summary: TargetFigures[];
  version: number;
  why: string;
  is_here: boolean;
  file_sha256: string;
  matrix: CaseRow[];
  graders: GraderFigures[];
}

/** What the tour shows: the ids of exchanges, a session, a run and an eval, by what they are an example of. */
export interface ExampleShown {
  places: { [key: string]: string };
}

/** The exchange was cancelled for this reason. `usage` is what had been used by then, if an answer had begun. */
export interface ExchangeCancelledFact {
  kind: "cancelled";
  reason: "client_gone" | "interrupted" | "shutdown" | "timeout" | "user";
  usage: Usage | null;
}

/** The additional fields of a view: the facts, and what belongs to the exchange. `reason` is why it was cancelled, `transport` how the request arrived. */
export interface ExchangeDetails {
  losses?: Loss[];
  additions?: Addition[];
  hashes?: Hashes;
  facts?: NotedFact[];
  replays?: string[];
  thread?: Thread;
  fault?: FaultShown;
  reason?: "client_gone" | "interrupted" | "shutdown" | "timeout" | "user";
  transport?: string;
  raw?: RawShown;
}

/** The exchange ended in a fault. The other fields are those of `ExchangeFinished`, as far as an answer had arrived. */
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

/** The reply is complete. `status` and `headers` are the provider's, `sha256` is the hash of its raw body, `tools` are the names of the tools that it calls, each once; `first_byte` and `elapsed` are seconds since the request was received. `warning` describes a problem that did not make the exchange fail. */
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

/** A result that is not counted in any mean, and why. */
export interface Excluded {
  case: string;
  target: string;
  trial?: number;
  why: "error" | "not_graded" | "skipped";
  reason?: string;
}

/** The edit that replaces the reference to a response stored at the provider with the whole conversation. */
export interface ExpandOperation {
  op: "expand";
}

/** What happened, and what to do next. */
export interface FaultShown {
  code: string;
  message: string;
  hint: string;
}

/** A mistake in a filter. `column` counts from 1; it and `length` are in UTF-16 units, as in browsers. */
export interface FilterError {
  message: string;
  column: number;
  length: number;
  hint: string;
}

/** Whether a filter is valid, and the completions at the cursor. */
export interface FilterShown {
  ok: boolean;
  error: FilterError | null;
  completions: Offer[];
}

/** The label of a button, and the edits that it makes in one step. */
export interface Fix {
  label: string;
  operations: (SetTextOperation | SetOperation | InsertOperation | RemoveOperation | MoveOperation | DeleteOperation | RestoreOperation | DuplicateOperation | SetRoleOperation | SetBodyOperation | BatchOperation | ResetOperation)[];
}

/** Text between `before` and `after` that is replaced by `text`. An empty `before` means the start of the text, an empty `after` its end. */
export interface FixedSpan {
  before?: string;
  after?: string;
  text?: string;
}

/** What was forgotten, or would be: how many exchanges, and roughly how many bytes they take. `under_way` counts exchanges that match but stay, because they have not ended. `copies` are the logs of chats, runs and eval runs that refer to these exchanges and have texts of their own. */
export interface ForgetResult {
  exchanges: number;
  bytes: number;
  under_way: number;
  copies: string[];
}

/** What was forgotten, by model and kind of request. */
export interface ForgottenShown {
  forgotten: string[];
}

/** A piece of the reply, as it arrived, and how many seconds after the start of the attempt. */
export interface FrameArrivedFact {
  kind: "frame";
  data?: string;
  after: number;
}

/** One grader on one target. `n` is how often it graded. */
export interface GraderFigures {
  target: string;
  name: string;
  type: string;
  mean: number | null;
  n: number;
  passes: number;
  not_graded: number;
}

/** One grader's scores on both sides, each the mean over the trials; None if it gave none. */
export interface GraderPair {
  name: string;
  before: number | null;
  after: number | null;
}

/** SHA-256, in hex, of the client's body, of the body that was sent, and of the raw answer. */
export interface Hashes {
  received: string | null;
  sent: string | null;
  reply: string | null;
}

/** The exchange waits for a person: the whole request, or the tool calls of its reply. */
export interface HeldFact {
  kind: "held";
  phase: "request" | "tool_calls";
}

/** The outcome of a hold. */
export interface HoldDecided {
  id: string;
  state: "cancelled" | "dropped" | "failed" | "finished" | "held" | "received" | "sending";
  body_sha256: string;
}

/** The request of a round is held. It is inspected, edited and released through its exchange. */
export interface HoldPending {
  step: "hold";
  exchange: string;
}

/** A hold: since when, and until when. `client_deadline` is when the client will probably time out. `queue` are the ids of all held exchanges, in order of arrival. `reason` is why it is held, if not because of a rule. */
export interface HoldShown {
  phase: "request" | "tool_calls";
  since: number;
  deadline: number | null;
  on_timeout: "drop" | "send";
  client_deadline: number | null;
  queue: string[];
  reason: string;
}

/** `old`, between `before` and `after`, becomes `new`. */
export interface Hunk {
  before?: string;
  old?: string;
  new?: string;
  after?: string;
}

/** What an import added, or would add: new pairs and topics, and the number of pairs that existed already. */
export interface ImportShown {
  pairs: number;
  topics: number;
  skipped: number;
  format: string;
  problems: string[];
}

/** What was read from a file: new exchanges, those that were recorded already, and requests of an HTTP archive that are not for a model. */
export interface Imported {
  exchanges: number;
  known: number;
  others: number;
}

/** The settings that the topic of the next question inherits. */
export interface InheritedShown {
  system_prompt: string;
  has_system_prompt: boolean;
  instructions: string;
  model: string;
  style_directives: string[];
  toolsets: string[];
  parameters: TopicParameters;
}

/** Insert an element before a position or at the end (`-`), or a new key. */
export interface InsertOperation {
  op: "insert";
  keep?: "all" | "project" | "session" | null;
  pointer: string;
  value: Json;
}

/** Which requests are held: none, the next one, every one, or those that match the rules. */
export interface Intercepting {
  mode: "every" | "next" | "off" | "rules";
}

/** What happens to everything that the filter matches. Without `timeout_s`, a hold has no limit. */
export interface InterceptionRule {
  filter?: string;
  action?: "drop" | "hold" | "pass";
  phase?: "request" | "tool_calls";
  once?: boolean;
  timeout_s?: number | null;
  on_timeout?: "drop" | "send";
}

/** Repeat the edits made so far on later requests too. The document is not changed. */
export interface KeepEditsOperation {
  op: "keep";
  keep?: "all" | "project" | "session" | null;
  scope: "all" | "project" | "session";
}

/** An edit that would have helped. `label` tells what it does; `mask` repeats it on later requests of the session, or of the project or of all sessions if it would have helped in several. The savings are computed by applying the edit to recorded turns; `tried` is how many. */
export interface KeepableEdit {
  action: "freeze" | "mark" | "move" | "option" | "order" | "strip";
  label: string;
  words: string;
  saved_tokens: number;
  money: number | null;
  tried: number;
  mask: Mask;
}

/** The last send of a view. `telemetry` is its latest record, without messages and pairs, which are in the pair. */
export interface LastShown {
  pair: string;
  telemetry: SendTelemetry | null;
  trim_summary: string;
  trouble: TroubleShown | null;
}

/** The calibration of each model: its estimates are multiplied by `factor`, plus `added`. */
export interface LearnedShown {
  lessons: Lesson[];
}

/** What was learned about one model, for display. `kind` is what its requests contained: `text`, `tools`, `media` or both; or what its conversations grew by: `new words`, `new figures`, `new scripts`. `set_aside` is the number of counts that were not learned from, because nothing explains them. */
export interface Lesson {
  model: string;
  kind: string;
  factor: number;
  added: number;
  seen: number;
  set_aside: number;
}

/** The limits of a run; null means no limit. */
export interface LimitsShown {
  requests: number | null;
  tool_calls: number | null;
  tokens: number | null;
  cost: number | null;
  seconds: number | null;
  repeats: number | null;
  mistakes: number | null;
  behaviour: "confirm" | "stop";
}

/** One line about an exchange. `at` is when it was received; `status` what the client got; token counts are the provider's own. `previous` is the exchange whose conversation this one continues; `is_side` marks a side request of the client (for a title, or to choose a model). `method` is that of a raw request. `transport` is http, websocket or tls. `stored` is the fingerprint of the client for which a translated reply is stored. `saved` is how much more the tokens from the cache would have cost, in US dollars. `is_masked`: kept edits changed the request. `is_estimated`: tokens and cost are estimates, because the provider did not count them. */
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
  method?: string;
  transport?: string;
  stored?: string;
  tag?: string;
  saved?: number;
  is_masked?: boolean;
  is_estimated?: boolean;
  previous?: string;
  is_side?: boolean;
  title?: string;
}

/** Something in the source that the target does not express. `pointer` is its place in the source document. `content` is something that the model or the reader would have seen, `option` a setting, `identity` an id or bookkeeping that means nothing elsewhere. */
export interface Loss {
  pointer: string;
  what: string;
  why: string;
  severity: "content" | "identity" | "option";
}

/** A proposed case. `files` are those that it names, which are written beside the suite on saving; `placeholders` are the values of its variables, `left` what was left out. `turns` is the number of turns of the conversation, `suites` are the files to which it could be saved. */
export interface MadeShown {
  name: string;
  yaml: string;
  case: { [key: string]: Json };
  files: string[];
  placeholders: { [key: string]: string };
  left: Omission[];
  turns: number;
  suites: string[];
}

/** A kept edit. `name` is the session or project that it is for; with `is_off` it is kept but not applied. `anchor` is the section that it was made on, as the client sends it, and `part` the part; a strip has neither, nor does a `cache` mask, which keeps a prompt stable. A patch has `hunks`; a `set_text` has the whole `text`, for values that are not prose. */
export interface Mask {
  id?: string;
  scope?: "all" | "project" | "session";
  name?: string;
  kind: "cache" | "delete" | "patch" | "set_text" | "strip";
  anchor?: Anchor | null;
  part?: Anchor | null;
  text?: string | null;
  hunks?: Hunk[] | null;
  strip?: Strip | null;
  cache?: CacheEdit | null;
  label?: string;
  created?: number;
  is_off?: boolean;
}

/** The result of a mask on one request; `why` is what prevented it from being applied. */
export interface MaskOutcome {
  mask: string;
  outcome: "ambiguous" | "applied" | "missing" | "refused";
  section: string;
  why: string;
}

/** An image, audio or file: number `n` of those in the answer. */
export interface MediaBlock {
  type: "media";
  n: number;
  media_type: string;
}

/** A message in blocks like the chat's. */
export interface MessageShown {
  role: string;
  name: string;
  blocks: (TextBlock | ThinkingBlock | RefusalBlock | CallBlock | MediaBlock)[];
}

/** A message in short: its role and its text. */
export interface MessageSummaryTelemetry {
  role: string;
  content: string;
}

/** Should these interrupted calls run again? */
export interface MidFlightPending {
  step: "mid_flight";
  calls: PendingCall[];
}

/** A model that can be used. */
export interface ModelShown {
  id: string;
  provider: string;
  context_window: number | null;
}

/** Remove a value and insert it at `pointer`, which is resolved after the removal. */
export interface MoveOperation {
  op: "move";
  keep?: "all" | "project" | "session" | null;
  from: string;
  pointer: string;
}

/** One change that was made, what it applies to, why, and the place in the suite. */
export interface Note {
  kind: "added" | "attached" | "extracted" | "inlined" | "merged" | "moved" | "skipped" | "unclear";
  what: string;
  why: string;
  place?: SuitePlace;
}

/** A completion that replaces the term at the cursor, which begins at `from`. */
export interface Offer {
  text: string;
  label: string;
  help: string;
  from: number;
}

/** Something in the recording that is not in the case, or was changed, and why. */
export interface Omission {
  what: string;
  why: string;
}

/** A pair with all its answers, oldest first, and the telemetry of its last send. */
export interface PairOpened {
  id: string;
  topic: string;
  topic_path: string[];
  model: string;
  asking: string;
  user_text: string;
  attachments: AttachmentShown[];
  answer: AnswerShown | null;
  earlier: number;
  star: number;
  flag: "blue" | "grey";
  state: "complete" | "error" | "idle" | "sending";
  trouble: TroubleShown | null;
  hand: "" | "in" | "out";
  at: number;
  exchange: string;
  summary_of: string[];
  standing: "excluded" | "hidden" | "included" | "left_out";
  tokens: TokenBand;
  run: string;
  is_edited: boolean;
  earlier_answers: AnswerShown[];
  telemetry: SendTelemetry[];
}

/** A question and its answer, as they are in a view. `asking` is the model that is being asked while an earlier answer is kept; `earlier` is the number of earlier answers. If `is_edited`, its text was changed while the request was held, and this is what was sent. */
export interface PairShown {
  id: string;
  topic: string;
  topic_path: string[];
  model: string;
  asking: string;
  user_text: string;
  attachments: AttachmentShown[];
  answer: AnswerShown | null;
  earlier: number;
  star: number;
  flag: "blue" | "grey";
  state: "complete" | "error" | "idle" | "sending";
  trouble: TroubleShown | null;
  hand: "" | "in" | "out";
  at: number;
  exchange: string;
  summary_of: string[];
  standing: "excluded" | "hidden" | "included" | "left_out";
  tokens: TokenBand;
  run: string;
  is_edited: boolean;
}

/** A tab that the plug-in `plugin` adds to the view of an exchange. Its module is at `/api/panels/{name}`. */
export interface PanelShown {
  name: string;
  title: string;
  plugin: string;
}

/** The comparison of pass rates; `p` is McNemar's exact test if each case has one trial. */
export interface PassShown {
  difference: number;
  low: number | null;
  high: number | null;
  p: number;
  wins: number;
  losses: number;
}

/** A call that needs a decision. `arguments` are those that the tool would get. */
export interface PendingCall {
  key: string;
  id: string;
  name: string;
  arguments: { [key: string]: Json } | string;
  repairs: Repair[];
}

/** The position of a pair on screen; null if it is not on screen. */
export interface PlaceShown {
  index: number | null;
}

/** A plug-in that the user has named: where it is from, what it adds, and which parts of it have failed in this process and why. The key of a failure is empty if the plug-in could not be loaded at all. */
export interface PluginShown {
  name: string;
  place: string;
  adds: string[];
  failures: { [key: string]: string };
}

/** The user's preferences, with the configured settings as defaults. */
export interface PreferencesShown {
  settings: SettingsShown;
  saved_filters: SavedFilter[];
}

/** The exact body of the next send; `trouble` is why it cannot be sent. `losses` and `additions` are what its dialect cannot express and what it requires in addition; `shares` is what the body consists of. */
export interface PreviewShown {
  body: string;
  body_sha256: string;
  dialect: string;
  provider: string;
  model: string;
  url: string;
  tokens: number;
  low: number;
  high: number;
  included: number;
  left_out_preflight: number;
  losses: Loss[];
  additions: Addition[];
  shares: BodyShare[];
  trouble: FaultShown | null;
}

/** The prices of a model of a provider in US dollars per million tokens, and when and where they were looked up. The user's own prices have no month. */
export interface PriceUsed {
  provider: string;
  model: string;
  input: number | null;
  output: number | null;
  as_of: string;
  source: string;
}

/** A provider, and why it cannot be used. */
export interface ProviderShown {
  name: string;
  ready: boolean;
  why: string;
}

/** The proxy of a run. `url` contains its password, `certificate` is the PEM certificate that the run's child processes have to trust; `hosts` are those whose connections are decrypted. */
export interface ProxyShown {
  url: string;
  certificate: string;
  hosts: string[];
}

/** What a send waits for; `line` describes it for a person. `can_go_at` is the time of day at which it can be sent, None if never. */
export interface Quota {
  line: string;
  can_go_at: number | null;
}

/** A body that was forwarded unchanged. `size` and `sha256` are of the whole body, after content decoding unless a `coding` is named; the first `kept` bytes are recorded. Without `is_whole`, it was interrupted. */
export interface RawBodyShown {
  media_type: string;
  size: number;
  sha256: string;
  kept: number;
  coding: string;
  is_whole: boolean;
}

/** A request that was forwarded unchanged, and its answer; each body appears once it has been forwarded. With `is_read`, the answer can be shown as a reply. */
export interface RawShown {
  method: string;
  path: string;
  request: RawBodyShown | null;
  reply: RawBodyShown | null;
  is_read: boolean;
}

/** A limit that has been reached. `raised` is what it would be raised to, None if it cannot be raised. */
export interface Reached {
  name: "cost" | "mistakes" | "repeats" | "requests" | "seconds" | "tokens" | "tool_calls";
  limit: number;
  spent: number;
  raised?: number;
  is_unmeasured?: boolean;
}

/** A client, or one of our own callers, sent a request. `sha256` is the hash of the body after content decoding. `session` labels the traffic, `client` is the program as it calls itself, and `origin` is the exchange that this one replays. `headers` are the client's, without credentials. `conversation` is the chat or run that a request of our own belongs to. `transport` is how it arrived: `http`, `tls` if the client addressed its provider, or a frame of a `websocket`. `method` is set for raw requests, whose body may still be arriving, in which case there is no `sha256`. */
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
  conversation: string;
  transport: string;
  method: string;
}

/** The record: where it is, its size, how many exchanges it has, and the time of the oldest. `retention` is what is kept for how long; with `is_configured`, it is that of the configuration, because the page sets nothing. */
export interface RecordShown {
  place: string;
  bytes: number;
  exchanges: number;
  oldest: number | null;
  retention: RetentionSettings;
  is_configured: boolean;
}

/** Repeat one undone step. */
export interface RedoOperation {
  op: "redo";
  keep?: "all" | "project" | "session" | null;
}

/** The model's text when it declines. */
export interface RefusalBlock {
  type: "refusal";
  text: string;
}

/** A client rejected our certificate for this host; `why` is its TLS alert. With `is_tunnelled`, its further connections to the host are tunnelled. */
export interface RefusalShown {
  host: string;
  why: string;
  is_tunnelled: boolean;
}

/** The hosts for which the clients of a run rejected our certificate. */
export interface RefusalsShown {
  refused: RefusalShown[];
}

/** A person released the request after seeing the body with this hash. */
export interface ReleasedFact {
  kind: "released";
  sha256: string;
}

/** Remove a value permanently; only undo brings it back. */
export interface RemoveOperation {
  op: "remove";
  keep?: "all" | "project" | "session" | null;
  pointer: string;
}

/** A place in the arguments whose value was read as another type than it was written as. */
export interface Repair {
  pointer: string;
  what: string;
}

/** A replaced value: its kind, its replacement, and in how many places it occurs. If it is long, `value` is only its beginning, and it cannot be kept. */
export interface ReplacedValue {
  kind: string;
  value: string;
  stand_in: string;
  places: number;
  is_cut: boolean;
}

/** A reply as one value, the beginning of its raw text, and the number of its events. `by_hand`: the client got `reply`, which the user wrote or changed. */
export interface ReplyShown {
  reply: { [key: string]: Json } | null;
  raw: string;
  events: number;
  by_hand: boolean;
}

/** The client can retrieve the reply by its id. A translation made the reply, so no provider keeps it. `owner` is a fingerprint of the credential that the client must present to retrieve it. `created` is the time that the reply gives as its own. A later fact of this kind replaces an earlier one, with the `metadata` that the client has set since, or with `is_deleted`. May follow the end of the exchange. */
export interface ReplyStoredFact {
  kind: "stored";
  owner: string;
  created: number;
  metadata: { [key: string]: Json } | null;
  is_deleted: boolean;
}

/** Go back to the document as it arrived; this too can be undone. */
export interface ResetOperation {
  op: "reset";
  keep?: "all" | "project" | "session" | null;
}

/** Restore what a deletion removed. */
export interface RestoreOperation {
  op: "restore";
  keep?: "all" | "project" | "session" | null;
  section: string;
  part?: string | null;
}

/** The result of a tool. `media` is the number of images, audio and files in it; `first` is the index of the first of them among those of the whole answer. If `is_denied`, the call was not allowed, and the text explains it. */
export interface ResultShown {
  text: string;
  is_error: boolean;
  media: number;
  first: number;
  is_denied: boolean;
}

/** Exchanges that the filter matches are forgotten after this many days. */
export interface RetentionRule {
  filter: string;
  days: number;
}

/** Exchanges are forgotten after `days`, the oldest ones beyond `megabytes`, and those that a rule matches after the days of that rule; 0 means no limit. */
export interface RetentionSettings {
  days: number;
  megabytes: number;
  rules: RetentionRule[];
}

/** How the model's limit is divided, in tokens. `margin` is held back because sizes are estimates. */
export interface RoomShown {
  limit: number;
  system: number;
  tools: number;
  user: number;
  reply: number;
  margin: number;
  usable: number;
  history: number;
}

/** A request and its reply. `seconds` is how long the model took. */
export interface RoundShown {
  number: number;
  exchange: string;
  text: string;
  thinking: string;
  calls: CallShown[];
  finish: string | null;
  usage: Usage | null;
  cost: number | null;
  seconds: number | null;
  context: string;
  fault: FaultShown | null;
}

/** Some of the pairs on screen, oldest first; `from` is the position of the first. */
export interface RowsShown {
  version: number;
  total: number;
  from: number;
  rows: PairShown[];
}

/** A run in one line. `rounds` counts those that have a reply; `why` is how the run ended. */
export interface RunBrief {
  id: string;
  at: number;
  title: string;
  model: string;
  state: "ended" | "interrupted" | "running" | "waiting";
  why: string;
  rounds: number;
  spent: SpentShown;
  origin: { [key: string]: Json };
}

/** The provider's limit that the next request of a run waits for, and when the request is sent. */
export interface RunPaused {
  line: string;
  can_go_at: number;
}

/** All of a run. `reason` is why it was cancelled. `version` grows with each fact. `notes` are for a person, for example about a hook that failed. */
export interface RunShown {
  id: string;
  version: number;
  at: number;
  title: string;
  state: "ended" | "interrupted" | "running" | "waiting";
  why: string;
  reason: "client_gone" | "interrupted" | "shutdown" | "timeout" | "user" | null;
  provider: string;
  model: string;
  spent: SpentShown;
  limits: LimitsShown;
  reached: Reached | null;
  rounds: RoundShown[];
  pending: ApprovePending | ConfirmPending | MidFlightPending | HoldPending | null;
  is_stepping: boolean;
  origin: { [key: string]: Json };
  amendments: Amendment[];
  notes: string[];
  paused: RunPaused | null;
}

/** A filter and its unique name. */
export interface SavedFilter {
  name: string;
  filter: string;
}

/** What was or would be written: the file, its new hash, the new or changed cases, and the changed lines of an existing file. */
export interface SavedShown {
  file: string;
  sha256: string;
  cases: string[];
  change: ChangeShown | null;
}

/** A grader's result. `score` is from 0 to 1, or None if there is none; `scores` are those of the graders inside. */
export interface Score {
  name: string;
  type: string;
  verdict: "fail" | "not_graded" | "pass" | "skip";
  score?: number;
  weight?: number;
  required?: number;
  checks?: Check[];
  reason?: string;
  scores?: Score[];
  usage?: Usage;
  cost?: number;
  seconds?: number;
  exchanges?: string[];
  details?: { [key: string]: Json };
}

/** An item of the conversation, the system prompt, the tools or the options. `text` is what `set_text` without a part replaces. A deleted section keeps its old position in the list and has no pointer; an edit restores it. The viewer fills in `tokens`, `original_content` (the text of an edited section as it arrived) and `source_message_index` (the number of the item in the conversation as it arrived, from 0). The last two are None for sections that were not there on arrival. */
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
  category: "attachments" | "history" | "options" | "results" | "system" | "tools" | "user";
  tokens: Tokens | null;
  answers: CallReference[];
  reason: string;
  has_cache_mark: boolean;
  original_content: string | null;
  source_message_index: number | null;
}

/** A part of a section. `reason` is why it cannot be edited; a deleted part has no place and so no pointer. With `is_json` its text is JSON on the wire, not a string, so that only JSON can replace it. */
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

/** A section that can be left out: its kind, its beginning or the call that it is, its size in characters, and in how many requests and replies it occurs. */
export interface SectionShown {
  id: string;
  kind: "assistant" | "attachments" | "calls" | "results" | "system" | "thinking" | "tools" | "user";
  label: string;
  characters: number;
  places: number;
}

/** One pair, and the tokens planned for it. */
export interface SelectedTelemetry {
  id: string;
  model: string;
  tokens: number;
}

/** One moment of a send. Token numbers are likely sizes; `bands` has the full estimates, and `margin` is what was held back from the budget because the sizes may be larger. Fields that begin with `predicted` stay the same during a send; those that begin with `attempt` only decrease. `selection` has the pairs that this attempt sends, `trimming_removed` the predicted pairs that it leaves out, of which `preflight_trimmed_count` were left out before the first attempt. */
export interface SendTelemetry {
  kind: "telemetry";
  model: string;
  stage: "attempt" | "cancelled" | "error" | "filter_changed" | "overflow_exhausted" | "overflow_initial" | "overflow_retry" | "preflight" | "success" | "user_prompt_too_large" | "waiting";
  budget: TelemetryBudgetTelemetry;
  selection: SelectedTelemetry[];
  predictedMessageCount: number;
  predictedHistoryTokens: number;
  predictedTotalTokens: number;
  attemptHistoryTokens: number;
  attemptTotalTokens: number;
  AUT: number;
  trimmedCount: number;
  attemptsUsed: number;
  charsPerToken: number;
  remainingReserve: number;
  messages: MessageSummaryTelemetry[];
  sentCount: number;
  visibleCount: number;
  userRequestAllowance: number;
  assistantResponseAllowance: number;
  maxTrimAttempts: number;
  systemTokens: number;
  toolTokens: number;
  preflightTrimmedCount: number;
  trimmingRemoved: SelectedTelemetry[];
  trimmingRemovedTokens: number;
  bands: { [key: string]: TokenBand };
  margin?: number;
  lastErrorMessage?: string;
  overflowMatched?: boolean;
  finalDeliveredTokens?: number;
  reportedInputTokens?: number;
  waitSeconds?: number;
}

/** A session in a list. */
export interface SessionBrief {
  key: string;
  session: string;
  client: string;
  began: number;
  ended: number;
  turns: number;
  requests: number;
  failed: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  cost: number;
  unpriced: number;
  estimated_cost: number;
  title: string;
  project: string;
}

/** Where a request is in its session: number `turn` of the `turns` of its thread, and its neighbours. `turn` is 0 for a request that is not shown in the session; `above` is the turn that caused its thread, empty if none did. */
export interface SessionPlace {
  key: string;
  session: string;
  turn: number;
  turns: number;
  previous: string;
  next: string;
  above: string;
}

/** A session with its threads; with `is_cut`, older requests are left out. */
export interface SessionShown {
  key: string;
  session: string;
  client: string;
  began: number;
  ended: number;
  turns: number;
  requests: number;
  failed: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  cost: number;
  unpriced: number;
  estimated_cost: number;
  models: string[];
  is_cut: boolean;
  threads: SessionThread[];
}

/** Requests that continue each other, in order: a conversation, a sub-agent's conversation, a side request, or a replay. `requests` and `cost` include everything below. */
export interface SessionThread {
  kind: "agent" | "conversation" | "replay" | "side";
  title: string;
  requests: number;
  cost: number;
  turns: SessionTurn[];
}

/** One request of a session. `asked` is what the user wrote, empty if a turn only brings tool results. `total` is the cost of the session after it, with everything that it caused. `below` are the requests that it caused. `is_estimated`: the provider did not count its tokens. */
export interface SessionTurn {
  id: string;
  at: number;
  state: string;
  model: string;
  asked: string;
  status: number;
  fault: string;
  tools: string[];
  input_tokens: number | null;
  cached_tokens: number | null;
  output_tokens: number | null;
  cost: number | null;
  total: number;
  elapsed: number | null;
  is_estimated: boolean;
  below: SessionThread[];
}

/** Replace the document with this body, which is sent exactly as written. */
export interface SetBodyOperation {
  op: "set_body";
  keep?: "all" | "project" | "session" | null;
  body: string;
}

/** Replace an existing value. */
export interface SetOperation {
  op: "set";
  keep?: "all" | "project" | "session" | null;
  pointer: string;
  value: Json;
}

/** Change the role of an item of the conversation; `role` is a canonical role. */
export interface SetRoleOperation {
  op: "set_role";
  keep?: "all" | "project" | "session" | null;
  section: string;
  role: string;
}

/** Replace the text of a section, distributed over its text parts, or of one part. */
export interface SetTextOperation {
  op: "set_text";
  keep?: "all" | "project" | "session" | null;
  section: string;
  part?: string | null;
  text: string;
}

/** All active settings of the chat, under their public names. */
export interface SettingsShown {
  charsPerToken: number;
  userRequestAllowance: number;
  assistantResponseAllowance: number;
  maxTrimAttempts: number;
  preflightTrimming: boolean;
  estimation: "characters" | "model";
  styleDirectives: string[];
  replyFocus: "always" | "never" | "tall";
  partialHeightThreshold: number;
}

/** A format. `label` and `about` are for the page, which offers to copy the format if `is_text`; `suffix` and `media_type` are those of its files. A plug-in's format is not `is_built_in`. */
export interface ShareFormat {
  name: string;
  label: string;
  about: string;
  suffix: string;
  media_type: string;
  is_text: boolean;
  is_built_in: boolean;
}

/** How many exchanges there are, what is replaced in them, and their sections. `all_sections` is how many sections there are; if there are very many, `sections` has only the first of them. */
export interface SharePreview {
  exchanges: number;
  found: ReplacedValue[];
  sections: SectionShown[];
  all_sections: number;
}

/** A section, or one of its tools or options, as it is in one of the two requests. */
export interface Side {
  section: string;
  text: string;
  part: string;
  pointer: string;
}

/** The first match in an exchange, with the text around it on one line. */
export interface Snippet {
  id: string;
  of: "reply" | "request";
  before: string;
  hit: string;
  after: string;
}

/** The words that a filter looks for, and where they occur in exchanges. */
export interface SnippetsShown {
  words: string[];
  snippets: Snippet[];
}

/** What a run has used. `unmeasured` names the counts that are unknown; an unknown `cost` is null, never 0. If `is_estimated`, a provider did not report usage, and tokens and cost are partly an estimate. */
export interface SpentShown {
  requests: number;
  tool_calls: number;
  tokens: number;
  cost: number | null;
  seconds: number;
  unmeasured: ("cost" | "mistakes" | "repeats" | "requests" | "seconds" | "tokens" | "tool_calls")[];
  is_estimated: boolean;
}

/** What is removed: results or thinking older than this many turns of the user, or the tool of this name. */
export interface Strip {
  class: "thinking" | "tool" | "tool_results";
  older_than?: number;
  tool?: string;
}

/** The result of parsing a text as a suite. `sha256` is the new hash of its file, empty if nothing was written. */
export interface SuiteChecked {
  file: string;
  sha256: string;
  cases: number | null;
  problems: SuiteProblem[];
}

/** A suite as text, with the hash of its file. `targets` are the names that are defined for it, `usual` those that answer if none is picked. */
export interface SuiteOpened {
  file: string;
  yaml: string;
  sha256: string;
  cases: number | null;
  problems: SuiteProblem[];
  targets: string[];
  usual: string[];
}

/** A file, relative to the folder that the run was started for, and a line and column that count from 1. */
export interface SuitePlace {
  file?: string;
  line?: number;
  column?: number;
}

/** Something in a suite that keeps it from running (`error`) or that the user should know (`warning`). `path` is the place in the document (`tests[2].input[0].content`), `suggestion` is what to write instead. An error with a `case` keeps only that case from running. */
export interface SuiteProblem {
  place: SuitePlace;
  path: string;
  message: string;
  suggestion?: string;
  severity?: "error" | "warning";
  case?: string;
}

/** A suite below the configured folder. If `cases` is null, `problems` keep it from running. */
export interface SuiteShown {
  file: string;
  name: string;
  cases: number | null;
  problems: SuiteProblem[];
}

/**  */
export interface SuitesShown {
  folder: string;
  files: SuiteShown[];
}

/** A summary that a model has written, what it would save, and the exchange in which it was written. */
export interface SummaryDraft {
  before: TokenBand;
  after: TokenBand;
  text: string;
  exchange: string;
}

/** The figures of one target. Unknown values are null, not 0. `low` and `high` are the ends of the mean's confidence interval, within 0 and 1. `cost_at_least` is the known cost, `cost_unknown` how many answers and judgements it leaves out. `said` is the same in sentences. */
export interface TargetFigures {
  target: string;
  results: number;
  passed: number;
  failed: number;
  errors: number;
  not_graded: number;
  skipped: number;
  cached: number;
  pass_rate: number | null;
  pass_low: number | null;
  pass_high: number | null;
  mean: number | null;
  stderr: number | null;
  low: number | null;
  high: number | null;
  cost: number | null;
  cost_at_least: number;
  cost_unknown: number;
  tokens: number | null;
  tokens_at_least: number;
  seconds: number | null;
  said: string[];
}

/** `max_context` is the maximum size of a request (ML); `max_usable_raw` is what history and prompt can use of it. */
export interface TelemetryBudgetTelemetry {
  maxContext: number;
  maxUsableRaw: number;
}

/** Text of the answer. */
export interface TextBlock {
  type: "text";
  text: string;
}

/** The readable part of the reasoning. */
export interface ThinkingBlock {
  type: "thinking";
  text: string;
}

/** The conversation that an exchange belongs to; `previous` is the exchange that it continues. */
export interface Thread {
  previous: string;
  title: string;
  is_side: boolean;
}

/** An estimate: the likely number, and its bounds. */
export interface TokenBand {
  tokens: number;
  low: number;
  high: number;
}

/** A token estimate with its low and high bounds. */
export interface Tokens {
  tokens: number;
  low: number;
  high: number;
}

/** The provider's own counts, or with `is_estimated` estimates in their place, and the estimate of the prompt with its range. */
export interface TokensShown {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  is_estimated?: boolean;
  estimate?: number;
  low?: number;
  high?: number;
  how?: string;
  window?: number;
  reserve?: number;
  categories?: CategoryTokens[];
}

/** The parameters of requests in a topic; None means inherited. */
export interface TopicParameters {
  temperature?: number | null;
  top_p?: number | null;
  max_tokens?: number | null;
  effort?: string | null;
  verbosity?: string | null;
}

/** A topic; null means inherited. `path` has the names from the root down; `direct` and `total` are the numbers of pairs in it, and in it and all topics below. */
export interface TopicShown {
  id: string;
  name: string;
  parent: string;
  system_prompt: string | null;
  instructions: string | null;
  model: string | null;
  style_directives: string[] | null;
  toolsets: string[] | null;
  parameters: TopicParameters;
  path: string[];
  direct: number;
  total: number;
}

/** A filter of the traffic list, and its unique name. */
export interface TrafficFilter {
  name: string;
  filter: string;
}

/** All saved filters, in order. */
export interface TrafficFilters {
  filters: TrafficFilter[];
}

/** The body was translated into another dialect. `losses` is how many things were not carried over, and `report` lists them. */
export interface TranslatedFact {
  kind: "translated";
  dialect: string;
  sha256: string;
  losses: number;
  report: Loss[];
  additions: Addition[];
}

/** One run of a suite on one target. `change` is the change since the previous run, on their common cases. */
export interface TrendPoint {
  run: string;
  at: number;
  target: string;
  mean: number | null;
  low: number | null;
  high: number | null;
  pass_rate: number | null;
  results: number;
  finding: "better" | "cannot_tell" | "nothing" | "worse" | null;
  change: string;
}

/** One trial of a case on a target; without a result it is waiting or running. `reason` is why it has no answer or no better score, on one line, `answer` is the beginning of its answer. */
export interface TrialShown {
  trial: number;
  status: "execution_error" | "not_graded" | "ok" | "quality_failure" | "skipped" | "running" | "waiting";
  verdict: "fail" | "not_graded" | "pass" | "skip" | null;
  score: number | null;
  cached: boolean;
  seconds: number | null;
  cost: number | null;
  reason: string;
  answer: string;
}

/** Why there is no answer; `line` is shown in its place. */
export interface TroubleShown {
  code: string;
  message: string;
  label: string;
  hint: string;
  line: string;
  reason: "client_gone" | "interrupted" | "shutdown" | "timeout" | "user" | null;
}

/** What the body and the reply of a turn contain: the calls in words, what filled the context by kind, and where the cache broke. `is_gone`: the body is no longer recorded. */
export interface TurnDetails {
  id: string;
  calls: string[];
  kinds: ContextRow[];
  broken: CacheBreak | null;
  is_gone: boolean;
}

/** One turn of a live conversation: what was sent, the answer, and the graders' scores. */
export interface TurnShown {
  messages: MessageShown[];
  answer: (TextBlock | ThinkingBlock | RefusalBlock | CallBlock | MediaBlock)[];
  verdict: "fail" | "not_graded" | "pass" | "skip" | null;
  score: number | null;
  scores: Score[];
  reason: string;
  exchanges: string[];
  seconds: number | null;
  cost: number | null;
  error: string;
}

/** Go back one step. */
export interface UndoOperation {
  op: "undo";
  keep?: "all" | "project" | "session" | null;
}

/** The token counts of a request. `input_tokens` is the whole prompt, including cached and cache-written tokens. `reasoning_tokens` are part of `output_tokens`; `cache_write_1h_tokens` are the part of `cache_write_tokens` that the cache keeps for an hour, which costs more. `extras` are the provider's finer counts, `at` their place. The remaining fields affect the price: `audio_input_tokens` are part of `input_tokens`, `audio_output_tokens` and `image_output_tokens` of `output_tokens`. `server_tools` are the calls that the provider made itself, by tool. `tier` and `region` are those that answered, unless they are the usual ones. `cost` is what the provider reports to have charged, in dollars. With `is_estimated`, the provider did not count input or output, or the answer was interrupted before it did, and the counts are estimates. */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cached_tokens?: number;
  cache_write_tokens?: number;
  reasoning_tokens?: number;
  cache_write_1h_tokens?: number;
  at?: string;
  extras?: { [key: string]: Json };
  audio_input_tokens?: number;
  audio_output_tokens?: number;
  image_output_tokens?: number;
  server_tools?: { [key: string]: number };
  tier?: string;
  region?: string;
  cost?: number;
  is_estimated?: boolean;
}

/** The problems of a draft. `ok` if none of them prevents it from being sent. */
export interface Validity {
  ok: boolean;
  problems: ValidityFinding[];
}

/** A problem and its place. Errors prevent a request from being sent; `inherited` problems were in the client's own request. */
export interface ValidityFinding {
  pointer: string;
  section: string;
  message: string;
  severity: "error" | "warning";
  inherited: boolean;
  fixes: Fix[];
}

/** Done; the history has this version. */
export interface Versioned {
  version: number;
}

/** A view. `model` is the one that the next question goes to, `selected` the one that the user selected, or empty. `rows` is the number of pairs on screen, `start` the position of the first that is sent. If `newest_hidden`, the newest pair is not on screen. `tools_trouble` is why the topic's tools cannot be used. */
export interface ViewShown {
  view: string;
  version: number;
  filter: string;
  model: string;
  selected: string;
  provider: string;
  topic: string;
  topic_path: string[];
  inherited: InheritedShown;
  visible: number;
  rows: number;
  start: number;
  newest_hidden: boolean;
  counter: ContextCounter;
  room: RoomShown;
  history_tokens: number;
  sending: string;
  paused: Quota | null;
  last: LastShown | null;
  tools_trouble: FaultShown | null;
}

export type Operation = SetTextOperation | SetOperation | InsertOperation | RemoveOperation | MoveOperation | DeleteOperation | RestoreOperation | DuplicateOperation | SetRoleOperation | SetBodyOperation | BatchOperation | ResetOperation | UndoOperation | RedoOperation | KeepEditsOperation | ExpandOperation;

export type Fact = ReceivedFact | TranslatedFact | HeldFact | EditedFact | ReleasedFact | DroppedFact | AnsweredFact | BudgetedFact | ReplyStoredFact | AttemptStartedFact | BodyPassedFact | FrameArrivedFact | ExchangeFinishedFact | ExchangeFailedFact | ExchangeCancelledFact;

/** A fact with its number and time. The `data` of a frame is in base64, and left out where `frames=0` was asked for. */
export type NotedFact = Fact & { n: number; at: number; exchange?: string; size?: number; fault?: FaultShown };

/** One exchange as the page opens it. */
export type View = Omit<Line, keyof Changed | keyof ExchangeDetails> &
  Changed &
  Required<Omit<ExchangeDetails, "fault">> &
  Pick<ExchangeDetails, "fault">;

/** A piece of an answer. */
export type Block = AnswerShown["blocks"][number];

/** What every refusal is. */
export interface Refusal {
  error: { code: string; message: string; hint: string; details?: { [key: string]: Json } };
}

/** What `GET` answers with, by path. */
export type GetAnswers = [
  [`/api/chat/views/${string}/place`, PlaceShown],
  [`/api/chat/views/${string}/rows`, RowsShown],
  [`/api/chat/pairs/${string}`, PairOpened],
  [`/api/chat/views/${string}`, ViewShown],
  [`/api/evals/${string}/case`, CaseShown],
  [`/api/exchanges/${string}/conversation`, ConversationShown],
  [`/api/exchanges/${string}/diff`, Diff],
  [`/api/exchanges/${string}/place`, SessionPlace],
  [`/api/exchanges/${string}/reply`, ReplyShown],
  [`/api/chat/filter`, FilterShown],
  [`/api/chat/preferences`, PreferencesShown],
  [`/api/chat/topics`, TopicShown[]],
  [`/api/evals/compare`, CompareShown],
  [`/api/evals/suite`, SuiteOpened],
  [`/api/evals/suites`, SuitesShown],
  [`/api/evals/trend`, TrendPoint[]],
  [`/api/chats/${string}`, ChatBrief],
  [`/api/evals/${string}`, EvalShown],
  [`/api/exchanges/${string}`, View],
  [`/api/runs/${string}`, RunShown],
  [`/api/sessions/${string}`, SessionShown],
  [`/api/about`, About],
  [`/api/approvals`, ApprovalShown[]],
  [`/api/cache`, CacheReport],
  [`/api/caps`, CapsShown],
  [`/api/chats`, ChatBrief[]],
  [`/api/context`, ContextShown],
  [`/api/costs`, CostsShown],
  [`/api/evals`, EvalBrief[]],
  [`/api/example`, ExampleShown],
  [`/api/exchanges`, { exchanges: Line[] }],
  [`/api/filter`, FilterShown],
  [`/api/filters`, TrafficFilters],
  [`/api/health`, { version: string }],
  [`/api/holds`, string[]],
  [`/api/interception`, Intercepting],
  [`/api/learned`, LearnedShown],
  [`/api/masks`, Mask[]],
  [`/api/plugins`, PluginShown[]],
  [`/api/providers`, ProviderShown[]],
  [`/api/proxy`, RefusalsShown],
  [`/api/record`, RecordShown],
  [`/api/rules`, InterceptionRule[]],
  [`/api/runs`, RunBrief[]],
  [`/api/sessions`, { [key: string]: SessionBrief[] }],
  [`/api/snippets`, SnippetsShown],
  [`/api/turns`, { [key: string]: TurnDetails[] }],
];

/** What `PUT` answers with, by path. */
export type PutAnswers = [
  [`/api/chat/topics/${string}`, TopicShown],
  [`/api/chat/views/${string}`, ViewShown],
  [`/api/chat/preferences`, PreferencesShown],
  [`/api/chat/topics`, TopicShown],
  [`/api/evals/suite`, SuiteChecked],
  [`/api/chats/${string}`, ChatBrief],
  [`/api/caps`, CapsShown],
  [`/api/filters`, TrafficFilters],
  [`/api/interception`, Intercepting],
  [`/api/masks`, Mask[]],
  [`/api/record`, RecordShown],
  [`/api/rules`, InterceptionRule[]],
];

/** What `POST` answers with, by path. */
export type PostAnswers = [
  [`/api/chat/pairs/${string}/edit`, PairOpened],
  [`/api/chat/pairs/${string}/reask`, AskedShown],
  [`/api/chat/pairs/${string}/swap`, PairOpened],
  [`/api/evals/${string}/case/adopt`, SavedShown],
  [`/api/evals/${string}/case/save`, SavedShown],
  [`/api/evals/${string}/case/undo`, SavedShown],
  [`/api/chat/compaction/compare`, Comparison],
  [`/api/chat/compaction/draft`, SummaryDraft],
  [`/api/chat/compaction/undo`, Versioned],
  [`/api/chats/${string}/fork`, ChatBrief],
  [`/api/evals/${string}/rerun`, EvalShown],
  [`/api/evals/${string}/stop`, EvalShown],
  [`/api/exchanges/${string}/answer`, HoldDecided],
  [`/api/exchanges/${string}/drop`, HoldDecided],
  [`/api/exchanges/${string}/edits`, Changed],
  [`/api/exchanges/${string}/release`, HoldDecided],
  [`/api/exchanges/${string}/replay`, { id: string }],
  [`/api/runs/${string}/confirm`, RunShown],
  [`/api/runs/${string}/decide`, RunShown],
  [`/api/runs/${string}/resume`, RunShown],
  [`/api/runs/${string}/step`, RunShown],
  [`/api/runs/${string}/stop`, RunShown],
  [`/api/approvals/forget`, ApprovalShown[]],
  [`/api/chat/cancel`, Versioned],
  [`/api/chat/command`, CommandShown],
  [`/api/chat/compaction`, AskedShown],
  [`/api/chat/delete`, Versioned],
  [`/api/chat/estimate`, EstimateShown],
  [`/api/chat/import`, ImportShown],
  [`/api/chat/mark`, Versioned],
  [`/api/chat/preview`, PreviewShown],
  [`/api/chat/restore`, Versioned],
  [`/api/chat/resume`, Versioned],
  [`/api/chat/send`, AskedShown],
  [`/api/chat/topics`, TopicShown],
  [`/api/evals/make`, MadeShown],
  [`/api/evals/save`, SavedShown],
  [`/api/learned/forget`, ForgottenShown],
  [`/api/chats`, ChatBrief],
  [`/api/evals`, EvalShown],
  [`/api/exchanges`, { id: string }],
  [`/api/forget`, ForgetResult],
  [`/api/import`, Imported],
  [`/api/masks`, Mask[]],
  [`/api/proxy`, ProxyShown],
];
