/** Training by SGD in a page gives the model that Node trains from the same ratings, seed and options. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PageRating, type PageSgdOptions, trainSgd } from '../../browser/index.ts';
import { CancelledError, Session, SGD, UsageError } from '../../index.ts';
import { randomRatings } from '../support/ratings.ts';
import { expectSameTraining } from './same-training.ts';

const all = randomRatings(73, 70, 90, 2400);
const cut = Math.floor(0.85 * all.length);
const [train, test] = [all.slice(0, cut), all.slice(cut)];
let session: Session;
beforeAll(async () => {
  session = await Session.create({ device: 'cpu', workers: 1 });
});
afterAll(() => session.close());

const kinds: Readonly<Record<string, PageSgdOptions>> = {
  'with biases': {},
  'without biases': { biases: false },
  'by waves': { schedule: 'wavefront' },
  'by the rates of rows': { rate: 'adagrad' },
  'ending early': { maxIter: 30, earlyStop: 1 },
};

describe('trainSgd', () => {
  it.each(Object.entries(kinds))("gives Node's model: %s", async (_, given) => {
    const options = { rank: 7, maxIter: 5, seed: 3, ...given };
    const page = await trainSgd(train, { ...options, test });
    const model = await new SGD(options).fit(session.fromRows(train), { validation: session.fromRows(test) });
    await expectSameTraining(page, model, train);
  });

  it('ends when it is cancelled', async () => {
    const aborting = new AbortController();
    const training = trainSgd(train, {
      maxIter: 50,
      signal: aborting.signal,
      onEvent: ({ type }) => type === 'iteration' && aborting.abort(),
    });
    await expect(training).rejects.toThrow(CancelledError);
  });

  it('refuses wrong ratings and options', async () => {
    const refuse = async (ratings: unknown, options: object, message: string) => {
      const error = await trainSgd(ratings as PageRating[], options).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(UsageError);
      expect((error as Error).message).toContain(message);
    };
    await refuse([], {}, 'there are no ratings to train on');
    await refuse([{ user: 1, item: 2 }], {}, 'a rating is an object such as');
    await refuse(train, { implicitPrefs: true }, 'implicitPrefs');
    await refuse(train, { device: 'gpu' }, 'device');
    await refuse(train, { threads: 0 }, 'threads must be a whole number');
  });
});
