import type { StoredAttributes } from '../connectors/model/attribute-table.ts';
import { MODEL_FORMAT } from '../connectors/model/decode-metadata.ts';
import { readIndexHeads } from '../connectors/model/item-index-file.ts';
import { loadInThread } from '../connectors/model/load-in-thread.ts';
import type { SavedModel, StoredModel } from '../connectors/model/model-store.ts';
import { DataError } from '../engine/errors.ts';
import type { EventSink } from '../engine/events.ts';
import type { JsonObject } from '../engine/json.ts';
import { keysFromVector, keysToVector } from '../engine/keys/arrow-keys.ts';
import { type IdForm, idValues } from '../engine/keys/find-id.ts';
import { keyCount, type KeyColumn } from '../engine/keys/key-column.ts';
import type { ModelAttributes } from '../operators/attributes/cold-rows.ts';
import { encodingJson, encodingOf } from '../operators/attributes/encoding.ts';
import type { DampedMeans } from '../operators/evaluation/rating-facts.ts';
import { savedPlan } from '../operators/planner/given-plan.ts';
import type { FactorModel } from '../operators/serving/factor-model.ts';
import { hasBiases, mapSides, type ModelParts } from './model-parts.ts';
import type { TrainingReport } from './reports/training-report.ts';

/**
 * Reads the parts of a saved model in a thread. A note reports that the model has no digests of its files.
 * Throws DataError naming a missing or wrong file, UsageError for ids that the form `ids` cannot hold.
 */
export async function loadedParts(
  directory: string,
  ids: IdForm | undefined,
  events: EventSink,
): Promise<Omit<ModelParts, 'session'> & { readonly hasHistories: boolean }> {
  const stored = await loadInThread(directory);
  if (!stored.hasDigests)
    events({
      type: 'note',
      code: 'no-digests',
      text:
        `${directory} has no digests of its files, like models of Spark and of older releases: ` +
        'files that were mixed from two models would not be noticed',
    });
  const {
    factorflow: metadata,
    rank,
    columns,
    coldStartStrategy,
    userFactors,
    itemFactors,
    itemCounts,
    userCounts,
  } = stored;
  if (hasBiases(metadata) && rank < 3)
    throw new DataError(`the metadata contain biases, which are two features of ${rank}`, {
      phase: 'load',
      file: directory,
    });
  const [users, items] = [keysFromVector(stored.userIds, 'id'), keysFromVector(stored.itemIds, 'id')];
  idValues(users, ids, 'user');
  idValues(items, ids, 'item');
  const indexes = await readIndexHeads(directory, { items: keyCount(items), features: rank });
  return {
    rank,
    users,
    items,
    userFactors,
    itemFactors,
    itemCounts,
    userCounts,
    columns: { ...columns, rating: typeof metadata.ratingCol === 'string' ? metadata.ratingCol : 'rating' },
    coldStartStrategy,
    metadata,
    means: storedMeans(stored),
    hasHistories: stored.hasHistories === true,
    attributes: stored.attributes && mapSides(stored.attributes, loadedAttributes),
    indexes,
  };
}

/** A model in the form in which it is saved. */
export function storedParts(
  { rank, users, items, userFactors, itemFactors }: Pick<ModelParts, keyof FactorModel>,
  {
    metadata = {},
    itemCounts,
    userCounts,
    means,
    columns,
    coldStartStrategy,
    attributes,
  }: Omit<ModelParts, keyof FactorModel | 'session'>,
): SavedModel {
  return {
    rank,
    userIds: keysToVector(users),
    userFactors,
    itemIds: keysToVector(items),
    itemFactors,
    itemCounts,
    userCounts: attributes?.user && userCounts,
    means,
    columns,
    coldStartStrategy,
    factorflow: metadata,
    attributes: attributes && mapSides(attributes, storedAttributes),
  };
}

function loadedAttributes({
  encoding: json,
  values,
  weights,
  coefficients,
}: StoredAttributes): ModelAttributes {
  const features = weights.length;
  return {
    id: json.id,
    encoding: encodingOf(json, { values, weights }),
    coefficients: { features, columns: coefficients.length / features, values: coefficients },
  };
}

/** The attributes of a side in the form in which they are saved. */
export function storedAttributes({ id, encoding, coefficients }: ModelAttributes): StoredAttributes {
  const { values, weights } = encoding;
  return { encoding: { id, ...encodingJson(encoding) }, values, weights, coefficients: coefficients.values };
}

/** The damped means that a model was saved with. */
function storedMeans({ factorflow: { meanRating }, means }: StoredModel): DampedMeans | undefined {
  return typeof meanRating === 'number' && means ? { mean: meanRating, ...means } : undefined;
}

/**
 * The facts about a training that are saved with its model. Everything that differs between runs of the same
 * data, seed and plan (times, number of threads) is left out, so that equal models have equal bytes.
 */
export function savedTraining(
  report: TrainingReport,
  users: KeyColumn,
  items: KeyColumn,
  ratingCol: string,
  meanRating?: number,
): JsonObject {
  const { planned } = report;
  return {
    format: MODEL_FORMAT,
    algorithm: report.algorithm,
    // Spark's own metadata has another `rank`, outside this object: the number of stored features, which
    // includes biases.
    rank: report.params.rank,
    params: { ...report.params },
    ratingCol,
    idTypes: { user: users.type, item: items.type },
    users: keyCount(users),
    items: keyCount(items),
    ratings: report.ratings,
    duplicates: report.duplicates,
    badRows: report.badRows,
    // Undefined without damped means. The means of users and items are in the folders userMeans/ and
    // itemMeans/.
    meanRating,
    // Undefined unless λ or regOffset is in units of it.
    ratingDeviation: report.ratingDeviation,
    // Undefined for explicit ratings.
    ratingWeight: report.ratingWeight,
    bestIteration: report.bestIteration,
    iterations: report.iterations.map(({ seconds: _seconds, ...iteration }) => iteration),
    ...(report.coldPairs === undefined ? {} : { testPairs: report.testPairs, coldPairs: report.coldPairs }),
    baselines: report.baselines,
    warnings: report.warnings,
    tuning: report.tuning,
    plan: savedPlan(planned),
  };
}
