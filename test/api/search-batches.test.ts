/** Searches that wait for a thread go together, in the order of their requests. */
import { expect, it } from 'vitest';
import { SearchBatches } from '../../api/serving/searches.ts';
import type { Found, SearchRequest } from '../../operators/serving/search.ts';

const request = (n: number, mask?: Uint8Array): SearchRequest => ({ query: [n], n, mask });

/** Batches that end when the test says so; each search finds its own n. */
function recorded(threads: number, fails: (n: number) => boolean = () => false) {
  const sent: { readonly index: string; readonly of: readonly number[]; readonly end: () => void }[] = [];
  const run = async (index: string, requests: readonly SearchRequest[]): Promise<Found[]> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    sent.push({ index, of: requests.map(({ n }) => n), end: resolve });
    await promise;
    if (requests.some(({ n }) => fails(n))) throw new Error(`wrong: ${requests.length}`);
    return requests.map(({ n }) => ({ positions: [n], scores: [n] }));
  };
  return { sent, batches: new SearchBatches(run, () => threads) };
}

/** Lets promises that are settled continue. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

it('one search for each free thread is sent at once, the others wait and go together', async () => {
  const { sent, batches } = recorded(2);
  const found = Array.from({ length: 7 }, (_, n) => batches.search('item', request(n), undefined));
  expect(sent.map(({ of }) => of)).toEqual([[0], [1]]);
  sent[0].end();
  await settle();
  expect(sent.map(({ of }) => of)).toEqual([[0], [1], [2, 3, 4]]);
  sent[1].end();
  await settle();
  expect(sent[3].of).toEqual([5]);
  sent[2].end();
  await settle();
  for (const { end } of sent) end();
  expect(await Promise.all(found)).toEqual(
    Array.from({ length: 7 }, (_, n) => ({ positions: [n], scores: [n] })),
  );
});

it('only searches of one index and one mask go together', async () => {
  const { sent, batches } = recorded(1);
  const [a, b] = [new Uint8Array(1), new Uint8Array(1)];
  const all = [
    batches.search('item', request(0), undefined),
    batches.search('item', request(1, a), undefined),
    batches.search('item', request(2, b), undefined),
    batches.search('item', request(3, a), undefined),
    batches.search('user', request(4), undefined),
  ];
  for (let k = 0; k < 4; k++) {
    sent[k].end();
    await settle();
  }
  expect(sent.map(({ index, of }) => [index, of])).toEqual([
    ['item', [0]],
    ['item', [1, 3]],
    ['item', [2]],
    ['user', [4]],
  ]);
  await Promise.all(all);
});

it('a search that fails does not fail the others of its batch', async () => {
  const { sent, batches } = recorded(1, (n) => n === 2);
  const all = [0, 1, 2, 3].map((n) => batches.search('item', request(n), undefined));
  const outcomes = Promise.allSettled(all);
  for (let k = 0; k < 5; k++) {
    sent[k].end();
    await settle();
  }
  expect((await outcomes).map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'fulfilled',
  ]);
  expect(sent.map(({ of }) => of)).toEqual([[0], [1, 2, 3], [1], [2], [3]]);
});

it('a cancelled search is not sent, and an aborted signal refuses at once', async () => {
  const { sent, batches } = recorded(1);
  const cancel = new AbortController();
  const first = batches.search('item', request(0), undefined);
  const cancelled = batches.search('item', request(1), cancel.signal);
  const last = batches.search('item', request(2), undefined);
  cancel.abort();
  await expect(cancelled).rejects.toMatchObject({ code: 'CANCELLED' });
  await expect(batches.search('item', request(3), cancel.signal)).rejects.toMatchObject({
    code: 'CANCELLED',
  });
  sent[0].end();
  await settle();
  sent[1].end();
  await Promise.all([first, last]);
  expect(sent.map(({ of }) => of)).toEqual([[0], [2]]);
});
