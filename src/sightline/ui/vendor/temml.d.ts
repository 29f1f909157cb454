export interface MathTree {
  type?: string;
  text?: string;
  attributes?: Record<string, unknown>;
  classes?: string[];
  style?: Record<string, unknown>;
  children?: MathTree[];
}

export function treeOf(source: string, options: { displayMode?: boolean; throwOnError?: boolean; trust?: boolean; maxSize?: [number, number]; maxExpand?: number }): MathTree;
