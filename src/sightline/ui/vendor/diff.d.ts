/** The parts of two lists in order; undefined where more than `maxEditLength` insertions and removals would be needed. */
export function diffArrays<T>(
  before: readonly T[],
  after: readonly T[],
  options: { maxEditLength: number },
): { count: number; value: T[]; added: boolean; removed: boolean }[] | undefined;
