import type { Flags } from './command.ts';
import { readTable } from './sets.ts';

/** A published experiment about time, repeated on generated ratings: commands, and the paper's figures. */
export interface PublishedRun {
  readonly name: string;
  readonly title: string;
  /** The preset of `generate`. */
  readonly preset: string;
  /** The comparison and its limits: sentences for the output and the page. */
  readonly about: string;
  readonly iterations: number;
  /** Flags of `train` that all variants have. */
  readonly flags: Flags;
  /** The first is what others are compared with. */
  readonly variants: readonly Variant[];
  readonly published: readonly PublishedTime[];
  /** Measured GPU runs of bench/results with the same question. */
  readonly cards?: readonly CardCourse[];
  /** Only of an ablation: the paper's techniques. */
  readonly techniques?: readonly Technique[];
  /** A case of bench/ that a GPU runs after the variants, on the same ratings: techniques without a flag. */
  readonly bench?: readonly string[];
}

export interface Variant {
  readonly label: string;
  readonly flags: Flags;
  /** The only kind of device that runs it. */
  readonly only?: 'cpu' | 'gpu';
}

/** A figure that the paper's text or table states. */
interface PublishedTime {
  readonly system: string;
  readonly hardware: string;
  readonly figure: string;
  readonly source: string;
}

/** Rows of a result of bench/results, one an iteration. */
export interface CardCourse {
  readonly label: string;
  /** Id of the result. */
  readonly result: string;
  /** Texts that a row of the course has, by column. */
  readonly where: Readonly<Record<string, string>>;
  /** Name of the column that counts iterations. */
  readonly counted: 'iteration' | 'epochs';
}

/** A technique of the paper, with the gain that it states. */
export interface Technique {
  readonly technique: string;
  readonly paper: string;
  readonly source: string;
  /** A row of a result of bench/results: time without the technique, as a multiple of the time with it. */
  readonly card?: { readonly result: string; readonly row: string; readonly column: string };
  /** The variant that is run without the technique, compared with the first one. */
  readonly variant?: string;
  /** The reason for having no variant on a CPU. */
  readonly absent?: string;
}

/** Experiments about time, which generate their ratings. */
export const runs = readTable<readonly PublishedRun[]>('runs.json');
