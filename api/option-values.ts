/**
 * The values of options, for programs that print them before they load Arrow or open a device: help texts,
 * shell completions, forms.
 */
import { fileFormats } from '../connectors/files/format-names.ts';
import { textTypes } from '../connectors/lines/text-type.ts';
import { codecs, parquetBackendNames } from '../connectors/parquet/backend.ts';
import {
  type ChosenMetric,
  rankingBaselineNames,
  rankingMetricNames,
  readMetric,
} from '../operators/evaluation/ranking/ranking-metrics.ts';
import { MAXIMUM_RANK, MOST_ITERATIONS } from '../operators/params/common.ts';
import { timeIn } from '../operators/ratings/rows/time-in.ts';
import { presetNames } from '../synthetic/presets.ts';

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

/** Maximum values. */
export const bounds = { rank: MAXIMUM_RANK, iterations: MOST_ITERATIONS } as const;
