/** Calls of every kind in one session, for closing it among them. */
import { join } from 'node:path';
import { ALS, count, CrossValidator, type Dataset, type Model, Session, SGD } from '../../index.ts';
import { randomRatings, ratingBatches } from './ratings.ts';

export const CLOSED = 'the session is closed. Close it once everything that runs in it has ended';

export const rows = randomRatings(7, 300, 200, 6000);
export const batches = ratingBatches(rows, 500);

export interface Opened {
  readonly session: Session;
  readonly data: Dataset;
  readonly model: Model;
}

export const opened = async (): Promise<Opened> => {
  const session = await Session.create({ device: 'cpu', workers: 2 });
  const data = session.from(batches);
  return { session, data, model: await new ALS({ rank: 4, maxIter: 1 }).fit(data) };
};

export interface Calls {
  readonly [name: string]: () => Promise<unknown>;
}

const small = { rank: 4, maxIter: 3 };

/**
 * Calls on a data set and a model of one session. `saved`: a saved model; `output`: a folder for what they
 * write.
 */
export function callsOf({ session, data, model }: Opened, saved: string, output: string): Calls {
  const [user, item] = [rows[0].user, rows[0].item];
  const read = async (dataset: AsyncIterable<unknown>) => {
    for await (const _ of dataset);
  };
  return {
    als: () => new ALS(small).fit(data),
    validated: () => new ALS(small).fit(data, { validation: data }),
    implicit: () => new ALS({ ...small, implicitPrefs: true }).fit(data),
    sgd: () => new SGD(small).fit(data),
    checkpoints: () => new ALS(small).fit(data, { checkpointDir: join(output, 'checkpoints') }),
    folds: () =>
      new CrossValidator({
        estimator: (params) => new ALS({ ...small, ...params }),
        grid: [{ rank: 2 }, { rank: 3 }],
        numFolds: 2,
        metric: 'rmse',
      }).fit(data),
    plan: () => new ALS(small).plan(data),
    update: () => model.update(data),
    evaluate: () => model.evaluate(data),
    ranking: () => model.evaluateRanking(data),
    'fold in': () => model.foldIn(data),
    exclusions: () => model.exclusions(data),
    'recommend by id': () => model.recommend(user, 3),
    'recommend by ratings': () => model.recommend({ ratings: [{ item, rating: 4 }] }, 3),
    explain: () => model.explain([{ item, rating: 4 }], item),
    lists: () => model.recommendForAllUsers(3).write.parquet(join(output, 'lists')),
    similar: () => read(model.similarItems([item], 3)),
    save: () => model.save(join(output, 'model')),
    predictions: () => read(model.predict(data)),
    rows: () => read(data),
    groups: () => data.groupBy('user').agg(count()).collect(),
    'leave out': () => data.leaveOut(1),
    csv: () => data.write.csv(join(output, 'rows.csv')),
    count: () => data.count(),
    schema: () => data.schema(),
    'load model': () => session.loadModel(saved),
  };
}
