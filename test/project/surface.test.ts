/**
 * The public names, which change by decision alone, and their declarations in one file. A type is named if
 * programs annotate it; `Parameters` and `ReturnType` of a method give all others.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import * as library from '../../index.ts';
import { surfaces } from './surfaces.ts';

const root = resolve(import.meta.dirname, '../..');

const values = `
  Session Profile Trace
  Dataset col Column expr lit when functions
  collectList collectSet count countDistinct first last max maxBy mean median min minBy quantile stddev sum
  denseRank lag lead rank rowNumber sessionNumber WindowFunction
  ALS SGD chooseTrainer ExplainedPlan explain
  Model ItemNames
  paramGrid CrossValidator TrainValidationSplit
  CancelledError CapacityError DataError DeviceLostError DivergedError FactorFlowError UsageError LostTrainingError
  ArrowSource NdjsonSource ParquetSource RowSource TextSource ArrowSink NdjsonSink ParquetSink TextSink
  batchStream`;

const types = `
  SessionOptions DeviceRequest RunOptions EventSink ProgressEvent
  TrainTest RowOf ErrorCode FrameRange ShiftOptions Window
  AlsOptions SgdOptions FitOptions CheckpointOptions EarlyStopMetric PhysicalPlan
  Id Exclusions ItemFilter ItemFilters RecommendOptions RequestOptions UserRecommendations Explanation
  TrainingReport Evaluation RankingOptions SaveOptions RankingEvaluation
  CrossValidatorOptions TrainValidationSplitOptions Tuning TuningBaselines Trial TuningMetric
  Description Operator Sink Source SourceStatistics ValueNeeds ExecutionContext BatchStream JsonObject`;

const named = (list: string) => list.trim().split(/\s+/).sort();

it('the library has these values', () => {
  expect(Object.keys(library).sort()).toEqual(named(values));
});

it('the declarations have these names, and import Arrow alone', () => {
  const declarations = readFileSync(join(root, 'dist/types/index.d.ts'), 'utf8');
  const declared = Array.from(
    declarations.matchAll(
      /^export (?:declare )?(?:abstract )?(?:class|const|function|interface|type) (\w+)/gm,
    ),
    ([, name]) => name,
  );
  const listed = Array.from(declarations.matchAll(/^export (?:type )?\{([^}]*)\};/gm), ([, list]) =>
    list.split(',').map((name) => name.replace(/\btype\b/, '').trim()),
  ).flat();
  const all = [...new Set([...declared, ...listed])].filter((name) => name !== '').sort();
  expect(all).toEqual([...named(values), ...named(types)].sort());
  const packages = new Set(Array.from(declarations.matchAll(/\bfrom "([^"]+)"/g), ([, name]) => name));
  expect([...packages]).toEqual(['apache-arrow']);
});

it('classes that are made with options name them', () => {
  for (const name of ['ALS', 'SGD', 'Session', 'CrossValidator', 'TrainValidationSplit']) {
    const options = `${name.charAt(0)}${name.slice(1)}Options`.replace(
      /^(ALS|SGD)/,
      (all) => all[0] + all.slice(1).toLowerCase(),
    );
    expect(named(types)).toContain(options);
  }
});

it('exports, flags, routes and parameters are the recorded ones; node test/project/surfaces.ts records them', async () => {
  for (const [name, text] of Object.entries(await surfaces())) {
    expect(text, name).toBe(readFileSync(join(root, `test/golden/surfaces/${name}.txt`), 'utf8'));
  }
});
