import type { StoredCheckpoint } from '../../../connectors/checkpoint/checkpoint-folder.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { HostCopy, Matrices } from '../../../operators/training/training.ts';
import { packageInfo } from '../../package-info.ts';
import { differencesOf, savedPlan, shortly, shownName } from '../../../operators/planner/given-plan.ts';
import type { Fingerprint } from './data-fingerprint.ts';

export interface CheckpointedRun {
  readonly algorithm: string;
  readonly params: { readonly maxIter: number; readonly earlyStop?: number | undefined };
}

/** The state of a run without its matrices, as stored in a checkpoint. */
export function stateOf(
  { algorithm, params }: CheckpointedRun,
  { iteration, best, iterations, course }: HostCopy<Matrices>,
  { data, plan }: { readonly data: Fingerprint | undefined; readonly plan: PhysicalPlan | undefined },
): JsonObject {
  const state = {
    package: packageText(),
    algorithm,
    bestIteration: best?.iteration ?? iteration,
    params,
    data: { ...data },
    plan: plan && savedPlan(plan),
    course,
    iterations,
  };
  return JSON.parse(JSON.stringify(state)) as JsonObject;
}

/** ", which factorflow 0.0.9 wrote" for a checkpoint of another version; else empty. */
export function otherWriter(state: StoredCheckpoint['state']): string {
  if (state.package === packageText()) return '';
  const writer = String(state.package).replaceAll(/[^\w.@/ -]/g, '');
  return `, which ${writer.slice(0, 60)} wrote`;
}

function packageText(): string {
  const { name, version } = packageInfo();
  return `${name} ${version}`;
}

/**
 * Throws DataError for a damaged checkpoint, UsageError for a checkpoint of another algorithm, of other
 * parameters, or with more iterations than the run has.
 */
export function requireSameRun(
  found: StoredCheckpoint,
  { algorithm, params }: CheckpointedRun,
): StoredCheckpoint {
  const { path, iteration, state } = found;
  requireUsable(path, state);
  const { maxIter: _, ...own } = JSON.parse(JSON.stringify(params)) as JsonObject;
  const { maxIter: _saved, ...saved } = state.params as JsonObject;
  const names = [...new Set([...Object.keys(own), ...Object.keys(saved)])];
  const ofParams = names
    .map((name) => ({
      name,
      differences: differencesOf(shownName(name), saved[name], own[name], 'the checkpoint'),
    }))
    .filter(({ differences }) => differences.length > 0);
  const differences = [
    ...differencesOf('algorithm', state.algorithm, algorithm, 'the checkpoint'),
    ...ofParams.flatMap((one) => one.differences),
  ];
  if (differences.length > 0)
    throw misfit(
      path,
      differences,
      state.algorithm === algorithm
        ? ofParams.flatMap(({ name }) => (name in own ? optionOf(name, saved[name]) : []))
        : [],
    );
  if (iteration > params.maxIter)
    throw misfit(path, [`it is of iteration ${iteration}, and maxIter is ${params.maxIter}`]);
  return found;
}

/** Throws DataError for a state that lacks something a run needs. */
function requireUsable(
  path: string,
  { algorithm, params, data, iteration, bestIteration, iterations }: StoredCheckpoint['state'],
): void {
  const isObject = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value);
  const isComplete =
    Array.isArray(iterations) &&
    iterations.length === iteration &&
    iterations.every(
      (one, at) =>
        isObject(one) &&
        (one as JsonObject).iteration === at + 1 &&
        Number.isFinite((one as JsonObject).loss),
    );
  const isBest =
    Number.isSafeInteger(bestIteration) && Number(bestIteration) >= 1 && Number(bestIteration) <= iteration;
  if (typeof algorithm === 'string' && isObject(params) && isObject(data) && isComplete && isBest) return;
  throw new DataError('the checkpoint is damaged or foreign: it has no usable state of a run', {
    phase: 'resume',
    file: path,
  });
}

/**
 * The error for a checkpoint of another run. `options`: the checkpoint's values of the parameters that
 * differ, as options with which a run could continue it.
 */
export function misfit(
  path: string,
  differences: readonly string[],
  options: readonly string[] = [],
): UsageError {
  const advice =
    options.length === 0
      ? 'Train with the data and parameters of the checkpoint, or give another checkpointDir'
      : `A checkpoint keeps the values of its run, including the defaults at that time: to continue it ` +
        `give ${options.join(' and ')}, or give another checkpointDir`;
  return new UsageError(`the checkpoint does not fit: ${shortly(differences)}`, {
    phase: 'resume',
    file: path,
    advice: `${advice}; maxIter may differ`,
  });
}

/** A parameter as an option in advice: cgSteps: 6. */
function optionOf(name: string, value: Json | undefined): string[] {
  if (typeof value === 'string' && /^[\w.:@-]+$/.test(value)) return [`${name}: '${value}'`];
  return typeof value === 'number' || value === true ? [`${name}: ${value}`] : [];
}
