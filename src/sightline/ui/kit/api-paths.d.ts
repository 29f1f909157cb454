/** The type of the server's answer to a call, by method and path. Both tables and types are generated. */

import type { GetAnswers, PostAnswers, PutAnswers } from "../api-types.d.ts";

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
