import type { Chart } from './figure.ts';

/** A part of a report: a heading, then its contents in this order. */
export interface Section {
  readonly heading: string;
  readonly text?: string;
  readonly facts?: readonly (readonly [name: string, value: string | null | undefined])[];
  readonly charts?: readonly Chart[];
  readonly tables?: readonly PageTable[];
  /** A custom drawing. */
  readonly drawing?: () => HTMLElement;
  /** Monospaced text. */
  readonly code?: string;
}

export interface PageTable {
  readonly title?: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** True for columns of numbers; default: all except the first. */
  readonly numbers?: (column: number) => boolean;
}

/** The result in one line, and the numbers that lead to it. */
export interface Verdict {
  /** `good` and `bad` have a colour. */
  readonly tone: 'good' | 'bad' | 'plain';
  readonly text: string;
  readonly detail?: string | undefined;
}

/** A number on the first screen: its name, and a remark in smaller type. */
export interface Tile {
  readonly name: string;
  readonly value: string;
  readonly remark?: string | undefined;
}

/** The first screen of a page. */
export interface Lead {
  readonly verdict: Verdict;
  readonly tiles?: readonly Tile[];
  readonly charts?: readonly Chart[];
}

/** The contents of a page. */
export interface Report {
  readonly title: string;
  readonly lead?: Lead | undefined;
  readonly warnings?: readonly string[] | undefined;
  /** The GPU that was used. */
  readonly adapter?: string | null;
  readonly sections: readonly Section[];
}
