/** The types of the server's answers by method and path. The types themselves are generated: see api-types.d.ts. */

import type * as api from "../api-types.d.ts";

type Id = string;

/** What `GET` answers, by path without the query. More specific paths come first. */
type GetAnswers = [
  ["/api/about", api.About],
  ["/api/health", { version: string }],
  ["/api/providers", api.ProviderShown[]],
  ["/api/example", api.ExampleShown],
  ["/api/exchanges", { exchanges: api.Line[] }],
  [`/api/exchanges/${Id}/reply`, api.ReplyShown],
  [`/api/exchanges/${Id}/diff`, api.Diff],
  [`/api/exchanges/${Id}/conversation`, api.ConversationShown],
  [`/api/exchanges/${Id}/place`, api.SessionPlace],
  [`/api/exchanges/${Id}`, api.View],
  ["/api/cache", api.CacheReport],
  ["/api/sessions", { sessions: api.SessionBrief[] }],
  [`/api/sessions/${Id}`, api.SessionShown],
  ["/api/turns", { turns: api.TurnDetails[] }],
  ["/api/costs", api.CostsShown],
  ["/api/snippets", api.SnippetsShown],
  ["/api/filters", api.TrafficFilters],
  ["/api/record", api.RecordShown],
  ["/api/caps", api.CapsShown],
  ["/api/learned", api.LearnedShown],
  ["/api/interception", api.Intercepting],
  ["/api/rules", api.InterceptionRule[]],
  ["/api/masks", api.Mask[]],
  ["/api/chats", api.ChatBrief[]],
  ["/api/chat/preferences", api.PreferencesShown],
  ["/api/chat/topics", api.TopicShown[]],
  [`/api/chat/pairs/${Id}`, api.PairOpened],
  [`/api/chat/views/${Id}/rows`, api.RowsShown],
  [`/api/chat/views/${Id}/place`, api.PlaceShown],
  [`/api/chat/views/${Id}`, api.ViewShown],
  ["/api/runs", api.RunBrief[]],
  [`/api/runs/${Id}`, api.RunShown],
  ["/api/approvals", api.ApprovalShown[]],
  ["/api/evals", api.EvalBrief[]],
  ["/api/evals/suites", api.SuitesShown],
  ["/api/evals/suite", api.SuiteOpened],
  ["/api/evals/compare", api.CompareShown],
  ["/api/evals/trend", api.TrendPoint[]],
  [`/api/evals/${Id}/case`, api.CaseShown],
  [`/api/evals/${Id}`, api.EvalShown],
];

/** What `PUT` answers. */
type PutAnswers = [
  ["/api/interception", api.Intercepting | null],
  ["/api/rules", api.InterceptionRule[] | null],
  ["/api/caps", api.CapsShown],
  ["/api/filters", api.TrafficFilters],
  ["/api/record", api.RecordShown],
  ["/api/chat/preferences", api.PreferencesShown],
  [`/api/chat/views/${Id}`, api.ViewShown],
  [`/api/chats/${Id}`, api.ChatBrief],
  ["/api/evals/suite", api.SuiteChecked],
];

/** What `POST` answers. */
type PostAnswers = [
  [`/api/exchanges/${Id}/edits`, api.Changed],
  ["/api/forget", api.ForgetResult],
  ["/api/learned/forget", api.ForgottenShown],
  ["/api/chats", api.ChatBrief],
  [`/api/chats/${Id}/fork`, api.ChatBrief],
  ["/api/chat/preview", api.PreviewShown],
  ["/api/chat/estimate", api.EstimateShown],
  ["/api/chat/send", api.AskedShown],
  ["/api/chat/command", api.CommandShown],
  ["/api/chat/topics", api.TopicShown],
  ["/api/chat/compaction/compare", api.ComparisonShown],
  ["/api/evals", api.EvalShown],
  ["/api/evals/make", api.MadeShown],
  ["/api/evals/save", api.SavedShown],
];

type WithoutQuery<Path extends string> = Path extends `${infer Bare}?${string}` ? Bare : Path;

/** The first entry whose pattern takes the path; any where the path is not known before the program runs. */
type Find<Path extends string, Table extends readonly unknown[]> = string extends Path
  ? any
  : Table extends readonly [readonly [infer Pattern, infer Answer], ...infer Rest]
    ? Path extends Pattern
      ? Answer
      : Find<Path, Rest>
    : any;

export type GetAnswer<Path extends string> = Find<WithoutQuery<Path>, GetAnswers>;
export type PutAnswer<Path extends string> = Find<WithoutQuery<Path>, PutAnswers>;
export type PostAnswer<Path extends string> = Find<WithoutQuery<Path>, PostAnswers>;
