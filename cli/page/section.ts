import type { Chart } from './figure.ts';

/** A part of a report: a heading, and what stands below it in this order. */
export interface Section {
  readonly heading: string;
  readonly text?: string;
  readonly facts?: readonly (readonly [name: string, value: string | null | undefined])[];
  readonly charts?: readonly Chart[];
  readonly tables?: readonly PageTable[];
  /** A drawing of its own. */
  readonly drawing?: () => HTMLElement;
  /** Text in the type of a terminal. */
  readonly code?: string;
}

export interface PageTable {
  readonly title?: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Columns that are numbers; default: all but the first. */
  readonly numbers?: (column: number) => boolean;
}

/** The contents of a page. */
export interface Report {
  readonly title: string;
  readonly warnings?: readonly string[] | undefined;
  /** The GPU that was used. */
  readonly adapter?: string | null;
  readonly sections: readonly Section[];
}
