import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A published table: its files, its measure, and the measure that chooses settings on the training part. */
export interface PublishedSet {
  readonly name: string;
  readonly title: string;
  /** Source of the files, and their terms of use. */
  readonly origin: string;
  /** The set's folder inside a folder of sets. */
  readonly folder: string;
  /** How the authors publish the files (see formats.ts), and how the names of NCF's files begin. */
  readonly format: 'user-lists' | 'counted-lists' | 'ncf';
  readonly prefix?: string;
  /** The Parquet form has candidates.parquet too. */
  readonly candidates?: true;
  readonly metrics: readonly string[];
  readonly k: readonly number[];
  readonly search: SearchPlan;
  /** Words or tags of the items, for --attributes. */
  readonly attributes?: AttributeFile;
  /** A sentence for the page of published tables. */
  readonly remark?: string;
}

/** A Parquet file with rows of an item, a word and, if words have counts, `count`. */
export interface AttributeFile {
  /** Path inside a folder of sets. */
  readonly file: string;
  /** The column of the words: whole numbers. */
  readonly word: string;
  /** Source of the file, and how the settings were chosen. */
  readonly remark: string;
}

export interface SearchPlan {
  /** Flags of `split` that hold out a validation part. */
  readonly heldOut: Readonly<Record<string, number>>;
  /**
   * Metric of full rankings. A table of 100 candidates asks for a hit rate within 3 % of all items: a
   * positive is among the first 10 of 100 if it is within about a tenth of all, and first within about a
   * hundredth. NDCG of full rankings prefers settings with fewer such hits.
   */
  readonly metric: string;
  /** Users whose validation pairs are ranked after each iteration. */
  readonly users: number;
  /** Rank at which w, α and λ are searched, and ranks that are tried with the best of them. */
  readonly rank: number;
  readonly ranks: readonly number[];
  readonly iterations: number;
  readonly trials: number;
}

/** Rows of a published table. */
interface PublishedRows {
  readonly source: string;
  readonly rows: readonly ResultRow[];
}

export interface ResultRow {
  readonly name: string;
  /** By metric, such as recall@20. */
  readonly values: Readonly<Record<string, number>>;
}

/** A table that is kept as a file of this folder. */
export function readTable<Table>(name: string): Table {
  return JSON.parse(readFileSync(join(import.meta.dirname, name), 'utf8')) as Table;
}

export const sets = readTable<readonly PublishedSet[]>('sets.json');

export function publishedRows(set: string): PublishedRows {
  return readTable<Readonly<Record<string, PublishedRows>>>('published.json')[set];
}
