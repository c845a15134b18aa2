/** Forms of int64 ids in a model's results: JSON can represent them, unless a form is forced. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { IdForm } from '../../engine/keys/find-id.ts';
import { ALS, col, type Dataset, type Id, type Model, Session } from '../../index.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { batchOf, randomRatings } from '../support/ratings.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const rows = randomRatings(5, 12, 20, 150);
const first = rows[0];
const LARGE = 2n ** 60n;
const folder = temporaryFolder();
const sessions = {
  default: await cpuSession(),
  number: await cpuSession({ ids: 'number' }),
  bigint: await cpuSession({ ids: 'bigint' }),
  string: await cpuSession({ ids: 'string' }),
};
const sessionOf = (form: IdForm | 'default'): Session => sessions[form];

/** Ratings whose users are int64 around `offset`, and whose items are int64 or of another type. */
function dataset(
  session: Session,
  {
    offset = 0n,
    items = 'int64',
  }: { readonly offset?: bigint; readonly items?: 'int64' | 'int32' | 'utf8' } = {},
) {
  const item = (value: number) =>
    items === 'int64' ? BigInt(value) : items === 'int32' ? value : `i${value}`;
  return session.from([
    batchOf({
      user: { type: 'int64', values: rows.map(({ user }) => BigInt(user) + offset) },
      item: { type: items, values: rows.map((row) => item(row.item)) },
      rating: { type: 'float64', values: rows.map(({ rating }) => rating) },
    }),
  ]);
}

async function trained(
  form: IdForm | 'default',
  options: Parameters<typeof dataset>[1] = {},
): Promise<Model> {
  return new ALS({ rank: 2, maxIter: 1 }).fit(dataset(sessionOf(form), options));
}

/** The types of all ids that a model gives. */
async function typesOfIds(model: Model, item: Id): Promise<Record<string, string>> {
  const known = await model.recommend(String(model.userArrays.ids[0]), 2);
  const rated = [{ item, rating: 4 }];
  const folded = await model.recommend({ ratings: rated }, 2);
  const explained = await model.explain(rated, item);
  return {
    user: typeof known.user,
    item: typeof known.items[0].item,
    folded: typeof folded.items[0].item,
    explained: typeof explained.item,
    contribution: typeof explained.contributions[0].item,
    userArray: typeof model.userArrays.ids[0],
    itemArray: typeof model.itemArrays.ids[0],
  };
}

const all = (type: string) =>
  Object.fromEntries(
    ['user', 'item', 'folded', 'explained', 'contribution', 'userArray', 'itemArray'].map((name) => [
      name,
      type,
    ]),
  );

describe('int64 ids that are safe integers', () => {
  it('are numbers in every answer, which JSON carries', async () => {
    const model = await trained('default');
    expect(model.idForms).toEqual({ user: 'number', item: 'number' });
    expect(await typesOfIds(model, first.item)).toEqual(all('number'));
    const answer = await model.recommend(BigInt(first.user), 2);
    expect(JSON.parse(JSON.stringify(answer))).toEqual(answer);
    expect(answer.user).toBe(first.user);
  });

  it('are found by number, bigint and text, and an unknown bigint does not break JSON', async () => {
    const model = await trained('default');
    const answers = await Promise.all(
      [first.user, BigInt(first.user), String(first.user)].map((user) => model.recommend(user, 3)),
    );
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[2]).toEqual(answers[0]);
    expect((await model.recommend(9_999n, 2)).user).toBe(9_999);
    expect((await model.recommend('9999', 2)).user).toBe(9_999);
    expect((await model.recommend('nobody', 2)).user).toBe('nobody');
    expect((await model.recommend(LARGE, 2)).user).toBe(String(LARGE));
    expect((await model.explain([{ item: first.item, rating: 3 }], 9_999n)).item).toBe(9_999);
  });
});

describe('ids of a side', () => {
  it('are bigints where one of them is unsafe, at either end, and the other side keeps its own form', async () => {
    for (const offset of [LARGE, -LARGE]) {
      const model = await trained('default', { offset });
      expect(model.idForms).toEqual({ user: 'bigint', item: 'number' });
      expect((await model.recommend(BigInt(first.user) + offset, 1)).user).toBe(BigInt(first.user) + offset);
    }
  });

  it.each(['bigint', 'string'] as const)(
    'have the form %s where the session asks for it, whatever their width',
    async (form) => {
      for (const items of ['int64', 'int32'] as const) {
        const model = await trained(form, { items });
        expect(model.idForms).toEqual({ user: form, item: form });
        expect(await typesOfIds(model, first.item)).toEqual(all(form));
      }
    },
  );

  it('find names with leading zeros in any form', async () => {
    const path = join(folder, 'titles.csv');
    writeFileSync(
      path,
      `item,title\n${[...new Set(rows.map(({ item }) => item))].map((item) => `000${item},film ${item}`).join('\n')}\n`,
    );
    for (const form of ['default', 'string'] as const) {
      const model = await trained(form);
      const names = await sessionOf(form).readItemNames(path, { model });
      const { items } = await model.recommend(first.user, 2, { names });
      expect(items.map(({ item, name }) => name === `film ${item}`)).toEqual([true, true]);
      expect((await model.explain([{ item: first.item, rating: 3 }], first.item, { names })).name).toBe(
        `film ${first.item}`,
      );
    }
  });
});

describe("the form 'number'", () => {
  it('ends a training on an unsafe id before the iterations, naming the id', async () => {
    const session = sessionOf('number');
    const events: string[] = [];
    const fit = new ALS({ rank: 2, maxIter: 1 }).fit(dataset(session, { offset: LARGE }), {
      onEvent: ({ type }) => events.push(type),
    });
    await expect(fit).rejects.toThrow(
      /the user id 1152921504606\d+ is beyond the safe integers, so ids: 'number' cannot hold it.*ids: 'bigint' or ids: 'string'/,
    );
    expect(events).not.toContain('iteration');
  });

  it('refuses to load a model with an unsafe id, which other forms load', async () => {
    const path = join(folder, 'large');
    await (await trained('default', { offset: LARGE })).save(path);
    await expect(sessionOf('number').loadModel(path)).rejects.toThrow(
      /the user id .* is beyond the safe integers/,
    );
    expect((await sessionOf('string').loadModel(path)).idForms).toEqual({ user: 'string', item: 'string' });
  });

  it('is one of three', async () => {
    await expect(Session.create({ ids: 'text' as IdForm })).rejects.toThrow(
      'ids must be one of number, bigint, string, got "text"',
    );
  });
});

describe('times as ids of text files are kept as they are written', () => {
  const day = (n: number) => new Date(Date.UTC(2024, 0, 1 + n)).toISOString().slice(0, 10);
  const at = (n: number) => `${day(n)} 10:00`;
  const csv = (name: string, user: (n: number) => string) => {
    const lines = rows.map((row) => `${user(row.user)},i${row.item},${row.rating}\n`);
    const file = join(folder, name);
    writeFileSync(file, `user,item,rating\n${lines.join('')}`);
    return file;
  };
  const fit = (data: Dataset) => new ALS({ rank: 2, maxIter: 1 }).fit(data);
  const { read } = sessions.default;

  it.each([
    ['dates', day],
    ['times', at],
    ['times with an offset', (n: number) => `${day(n)}T10:00:00+02:00`],
  ])('%s', async (name, user) => {
    const data = read.csv(csv(`${name}.csv`, user));
    const [train, test] = data.randomSplit([0.8, 0.2], { seed: 1 });
    const model = await fit(data.filter(col('rating').gt(-100)));
    expect([...model.userArrays.ids].sort()).toEqual([...new Set(rows.map((row) => user(row.user)))].sort());
    expect((await model.predict(data).first())?.user).toBe(user(first.user));
    expect(await model.evaluateRanking(test, { exclude: train })).toBeDefined();
    const trainedOnSplit = await fit(train);
    expect(trainedOnSplit.userArrays.ids.every((id) => typeof id === 'string')).toBe(true);
  });

  it('of NDJSON', async () => {
    const file = join(folder, 'times.ndjson');
    writeFileSync(file, rows.map((row) => `${JSON.stringify({ ...row, user: at(row.user) })}\n`).join(''));
    expect((await fit(read.ndjson(file))).userArrays.ids[0]).toMatch(/^\d{4}-\d\d-\d\d 10:00$/);
  });

  it('a condition that reads them as times needs the type, and the error says so', async () => {
    const data = read.csv(csv('condition.csv', at)).filter(col('user').ge('2024-01-02'));
    await expect(fit(data)).rejects.toThrow(`types: { "user": 'utf8' }`);
  });
});
