import { fileFormats, textTypes } from '../connectors/files/format-names.ts';
import { codecs, parquetBackendNames } from '../connectors/parquet/backend.ts';
import { UsageError } from '../engine/errors.ts';
import { shown } from '../engine/format.ts';
import type { Operator, Sink, Source } from '../engine/stream/operator.ts';
import {
  type ChosenMetric,
  rankingBaselineNames,
  rankingMetricNames,
  readMetric,
} from '../operators/evaluation/ranking/ranking-metrics.ts';
import { MAXIMUM_RANK } from '../operators/params/common.ts';
import { timeIn } from '../operators/ratings/rows/time-in.ts';
import { presetNames } from '../synthetic/presets.ts';

/**
 * Throws UsageError unless a value has all methods of an interface. `what` begins the message, such as "pipe
 * takes an operator".
 */
function requireMethods(value: unknown, methods: readonly string[], what: string): void {
  const has = (name: string) => typeof (value as Readonly<Record<string, unknown>>)[name] === 'function';
  if (typeof value === 'object' && value !== null && methods.every(has)) return;
  throw new UsageError(`${what}, got ${shown(value)}`, {
    advice: `It has the methods ${methods.join(', ')}`,
  });
}

export function requireOperator(value: unknown): asserts value is Operator {
  requireMethods(value, ['outputSchema', 'requiredColumns', 'execute'], 'pipe takes an operator');
}

export function requireSink(value: unknown): asserts value is Sink<unknown> {
  requireMethods(value, ['requiredColumns', 'consume'], 'runInto takes a sink');
}

export function requireSource(value: unknown): asserts value is Source {
  requireMethods(value, ['schema', 'execute'], 'session.source takes a source');
}

/** Throws UsageError unless all are column names. */
export function requireNames(what: string, names: readonly unknown[]): void {
  const wrong = names.findIndex((name) => typeof name !== 'string');
  if (wrong >= 0) throw new UsageError(`${what} takes names of columns, got ${shown(names[wrong])}`);
}

/** Throws UsageError unless it is a plain object with a value for each column. */
export function requireByColumn(what: string, values: unknown, example: string): void {
  if (typeof values === 'object' && values !== null && !Array.isArray(values)) return;
  throw new UsageError(`${what} takes values by column such as ${example}, got ${shown(values)}`);
}

/** Throws UsageError unless it is a list of column names. */
export function requireList(what: string, names: unknown): void {
  if (!Array.isArray(names)) throw new UsageError(`${what} takes a list of names, got ${shown(names)}`);
  requireNames(what, names);
}

/**
 * The values of options, for programs that print them before they load Arrow or open a device: help texts,
 * shell completions, forms.
 */
export const choices = {
  /** Formats of row files. */
  formats: fileFormats,
  /** Compression of Parquet. */
  codecs,
  parquetBackends: parquetBackendNames,
  /** Types of text columns. */
  textTypes,
  rankingMetrics: rankingMetricNames,
  rankingBaselines: rankingBaselineNames,
  /** Data sets whose shapes the generator can imitate. */
  presets: presetNames,
} as const;

export type Choice<Of extends keyof typeof choices> = (typeof choices)[Of][number];

export type { ChosenMetric };

/** True for a metric of rankings, with or without a k of its own. */
export function isChosenMetric(text: unknown): text is ChosenMetric {
  return typeof text === 'string' && readMetric(text) !== undefined;
}

/** A date such as 2024-06-01, parsed like a column of times; undefined for other text. */
export function dateIn(text: string): Date | undefined {
  const time = timeIn(text);
  return time === undefined ? undefined : new Date(time);
}

/** Largest rank of a training. */
export const mostRank = MAXIMUM_RANK;
