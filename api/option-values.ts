/**
 * The values that options take, for programs that print them before they load Arrow or open a device: help
 * texts, completions of a shell, forms.
 */
import { fileFormats } from '../connectors/files/format-names.ts';
import { textTypes } from '../connectors/lines/text-type.ts';
import { codecs, parquetBackendNames } from '../connectors/parquet/backend.ts';
import { rankingMetricNames } from '../operators/evaluation/ranking/ranking-metrics.ts';
import { MAXIMUM_RANK, MOST_ITERATIONS } from '../operators/params/common.ts';
import { presetNames } from '../synthetic/presets.ts';

export const choices = {
  /** Formats of files with rows. */
  formats: fileFormats,
  /** Compression of Parquet. */
  codecs,
  parquetBackends: parquetBackendNames,
  /** Types of columns of text. */
  textTypes,
  rankingMetrics: rankingMetricNames,
  /** Data sets whose shapes generated ratings have. */
  presets: presetNames,
} as const;

export type Choice<Of extends keyof typeof choices> = (typeof choices)[Of][number];

/** Largest values. */
export const bounds = { rank: MAXIMUM_RANK, iterations: MOST_ITERATIONS } as const;
