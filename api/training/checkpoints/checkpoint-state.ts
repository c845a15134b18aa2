import { createHash, type Hash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { StoredCheckpoint } from '../../../connectors/checkpoint/checkpoint-folder.ts';
import { DataError, UsageError } from '../../../engine/errors.ts';
import type { Json, JsonObject } from '../../../engine/json.ts';
import { type KeyColumn, keyCount } from '../../../engine/keys/key-column.ts';
import { keyHashes } from '../../../engine/keys/key-hash.ts';
import type { PhysicalPlan } from '../../../engine/plan/physical-plan.ts';
import type { ExecutionContext } from '../../../engine/run/context.ts';
import { changesText, differencesOf, nameText, savedPlan } from '../../../operators/planner/given-plan.ts';
import { blocksOf } from '../../../operators/ratings/parts-in-files.ts';
import { type RatingBlock, type Ratings, ratingsOf } from '../../../operators/ratings/ratings.ts';
import type { ReadRatings } from '../../../operators/training/fit.ts';
import type { HostCopy, Matrices } from '../../../operators/training/training.ts';
import { packageInfo } from '../../package-info.ts';

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
      differences: differencesOf(nameText(name), saved[name], own[name], 'the checkpoint'),
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
  return new UsageError(`the checkpoint does not fit: ${changesText(differences)}`, {
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

/** Identifies a run's data in a checkpoint. */
export type Fingerprint = {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
  readonly validationPairs: number | null;
  readonly userIds: string;
  readonly itemIds: string;
  readonly values: string;
  readonly validation: string | null;
  readonly attributes: string | null;
};

/** Bytes to hash at a time. */
const PIECE_BYTES = 1 << 24;

/** A fingerprint of the data of a run. It is equal for equal data, in any row order. */
export async function fingerprintOf(
  {
    users,
    items,
    ratings,
    test,
    attributes,
  }: {
    readonly users: KeyColumn;
    readonly items: KeyColumn;
    readonly ratings: Ratings;
    readonly test: RatingBlock | undefined;
    readonly attributes?: ReadRatings['attributes'];
  },
  ctx: ExecutionContext,
): Promise<Fingerprint> {
  const { users: ofUsers, items: ofItems } = attributes ?? {};
  const digestOfBlock = async (block: RatingBlock | undefined) =>
    block === undefined ? 'none' : digestOfRatings(ratingsOf(block), ctx);
  return {
    users: keyCount(users),
    items: keyCount(items),
    ratings: ratings.ratings,
    validationPairs: test?.ratings ?? null,
    userIds: await digestOf(Object.values(keyHashes(users))),
    itemIds: await digestOf(Object.values(keyHashes(items))),
    values: await digestOfRatings(ratings, ctx),
    validation: test === undefined ? null : await digestOfRatings(ratingsOf(test), ctx),
    attributes: attributes ? `${await digestOfBlock(ofUsers)} ${await digestOfBlock(ofItems)}` : null,
  };
}

/**
 * Two hashes joined to one text: of row offsets and column indices, and of values. They are computed in the
 * same pass, so that ratings in files are read once.
 */
async function digestOfRatings(ratings: Ratings, ctx: ExecutionContext): Promise<string> {
  const [places, values] = [createHash('sha256'), createHash('sha256')];
  let first = 0;
  for (const { rows, offsets } of ratings.parts) {
    await feed(places, first === 0 ? offsets : offsets.subarray(1).map((offset) => first + offset));
    first += offsets[rows];
  }
  for await (const { block } of blocksOf(ratings, ctx)) {
    await feed(places, block.indices);
    await feed(values, block.values);
  }
  return createHash('sha256').update(places.digest()).update(values.digest()).digest('hex');
}

async function digestOf(arrays: readonly ArrayBufferView[]): Promise<string> {
  const hash = createHash('sha256');
  for (const array of arrays) await feed(hash, array);
  return hash.digest('hex');
}

async function feed(hash: Hash, { buffer, byteOffset, byteLength }: ArrayBufferView): Promise<void> {
  for (let at = 0; at < byteLength; at += PIECE_BYTES) {
    hash.update(new Uint8Array(buffer, byteOffset + at, Math.min(PIECE_BYTES, byteLength - at)));
    // Lets devices and signals run.
    await setImmediate();
  }
}

/**
 * Texts about the differences of two fingerprints: of their counts or, if all counts are equal, of their
 * contents.
 */
export function fingerprintDifferences(saved: JsonObject, actual: Fingerprint): string[] {
  const counts = (['users', 'items', 'ratings', 'validationPairs'] as const).flatMap((name) =>
    differencesOf(
      name === 'validationPairs' ? 'pairs of the validation set' : name,
      saved[name],
      actual[name],
      'the checkpoint',
    ).map((text) => text.replace(' is ', ': ')),
  );
  if (counts.length > 0) return counts;
  const differences = {
    userIds: 'other users',
    itemIds: 'other items',
    values: 'other ratings of the same users and items',
    validation: 'another validation set',
    attributes: 'other attributes of users or items',
  } as const;
  return (Object.keys(differences) as (keyof typeof differences)[]).flatMap((name) =>
    (saved[name] ?? null) === actual[name] ? [] : [differences[name]],
  );
}
