import { formatCount } from '../../engine/format.ts';
import type { Json, JsonObject } from '../../engine/json.ts';
import type { ModelParts } from '../model-parts.ts';
import { factLines } from './fact-lines.ts';

/** A model without its factors. */
export interface ModelFacts {
  /** undefined if another program saved the model. */
  readonly algorithm: string | undefined;
  /** f: factors of a user or an item, without biases. */
  readonly rank: number;
  readonly biases: boolean;
  readonly users: number;
  readonly items: number;
  readonly idTypes: { readonly user: string; readonly item: string };
  readonly columns: ModelParts['columns'];
  readonly coldStartStrategy: string;
  /** Number of training ratings. */
  readonly ratings: number | undefined;
  readonly iterations: number | undefined;
  readonly bestIteration: number | undefined;
  /**
   * Errors and other measures of the iteration whose factors the model has: trainRmse, testRmse, ndcg@10, ...
   */
  readonly metrics: Readonly<Record<string, number>>;
  readonly params: JsonObject;
}

/** Sizes and columns of a model. */
export type ModelShape = Pick<ModelFacts, 'users' | 'items' | 'idTypes' | 'columns' | 'coldStartStrategy'> & {
  /** Stored features: the rank, plus two with biases. */
  readonly features: number;
};

const measures = ['trainRmse', 'testRmse', 'testMae'] as const;

/** The facts of a model from its metadata; models of Spark have no facts about their training. */
export function modelFacts({ features, ...shape }: ModelShape, metadata: JsonObject): ModelFacts {
  const params = objectOf(metadata.params);
  const biases = params.biases === true;
  const iterations = Array.isArray(metadata.iterations) ? metadata.iterations.map(objectOf) : undefined;
  const bestIteration = numberOf(metadata.bestIteration);
  const best = iterations?.find(({ iteration }) => iteration === bestIteration) ?? {};
  const found = [
    ...measures.map((name) => [name, best[name]] as const),
    ...Object.entries(objectOf(best.testMetrics)),
  ];
  return {
    ...shape,
    algorithm: typeof metadata.algorithm === 'string' ? metadata.algorithm : undefined,
    rank: features - (biases ? 2 : 0),
    biases,
    ratings: numberOf(metadata.ratings),
    iterations: iterations?.length,
    bestIteration,
    metrics: Object.fromEntries(
      found.flatMap(([name, value]) => (typeof value === 'number' ? [[name, value]] : [])),
    ),
    params,
  };
}

/** "ALS, rank 10 with biases" */
export function modelTitle({ algorithm, rank, biases, params }: ModelFacts): string {
  const implicit = params.implicitPrefs === true ? ' of implicit data' : '';
  return `${algorithm?.toUpperCase() ?? 'factors'}${implicit}, rank ${rank}${biases ? ' with biases' : ''}`;
}

/** "train RMSE 0.5427, test RMSE 0.8543"; undefined if nothing was measured. */
export function metricsText({ metrics }: Pick<ModelFacts, 'metrics'>): string | undefined {
  const names: Readonly<Record<string, string>> = {
    trainRmse: 'train RMSE',
    testRmse: 'test RMSE',
    testMae: 'test MAE',
  };
  const texts = Object.entries(metrics).map(
    ([name, value]) => `${names[name] ?? `test ${name}`} ${value.toFixed(4)}`,
  );
  return texts.length === 0 ? undefined : texts.join(', ');
}

/** "user, item and rating; predictions in prediction" */
export function columnsText({ user, item, rating, prediction }: ModelParts['columns']): string {
  return `${user}, ${item} and ${rating}; predictions in ${prediction}`;
}

/** Describes a model for console.log. `from`: its folder, or how it was made. */
export function modelText(facts: ModelFacts, from: string): string {
  const { users, items, idTypes, ratings, columns } = facts;
  return factLines(`Model: ${modelTitle(facts)}`, {
    users: `${formatCount(users)}, ids ${idTypes.user}`,
    items: `${formatCount(items)}, ids ${idTypes.item}`,
    ratings: ratings === undefined ? undefined : formatCount(ratings),
    metrics: metricsText(facts),
    from,
    columns: columnsText(columns),
  });
}

function objectOf(value: Json | undefined): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

function numberOf(value: Json | undefined): number | undefined {
  return typeof value === 'number' ? value : undefined;
}
