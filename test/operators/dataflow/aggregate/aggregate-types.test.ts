import { Dictionary, Field, Int32, List, Struct, Utf8, Utf8View, vectorFromArray } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { batchOf, column } from '../../../engine/expressions/evaluated.ts';
import { named, nullable, objectsOf, rowsOf, whole } from './aggregating.ts';

describe('types of columns', () => {
  it('dictionaries, which differ between batches, become plain values', async () => {
    const type = new Dictionary(new Utf8(), new Int32());
    const dictionaryOf = (cells: readonly (string | null)[]) => vectorFromArray([...cells], type).data[0];
    const parts = [
      ['a', 'b', null],
      ['b', 'c', 'a'],
      [null, null, 'd'],
    ].map((cells) => nullable(batchOf({ k: dictionaryOf(cells), x: dictionaryOf(cells.toReversed()) })));
    const rows = { schema: parts[0].schema, batches: parts };
    const result = await whole(
      rows,
      ['k'],
      [
        named('first', 'first', 'x'),
        named('list', 'collectList', 'x'),
        named('max', 'max', 'x'),
        named('n', 'countDistinct', 'x'),
      ],
    );
    expect(result.schema.fields.map(({ type: own }) => String(own))).toEqual([
      'Utf8',
      'Utf8',
      'List<Utf8>',
      'Utf8',
      'Int64',
    ]);
    expect(objectsOf(result)).toEqual([
      { k: 'a', first: null, list: ['b'], max: 'b', n: 1n },
      { k: 'b', first: 'b', list: ['b', 'a'], max: 'b', n: 2n },
      { k: null, first: 'a', list: ['a', 'd'], max: 'd', n: 2n },
      { k: 'c', first: 'c', list: ['c'], max: 'c', n: 1n },
      { k: 'd', first: null, list: [], max: null, n: 0n },
    ]);
  });

  it('lists and structs as values', async () => {
    const lists = vectorFromArray([[1, 2], null, [3]], new List(new Field('item', new Int32(), true)))
      .data[0];
    const structs = vectorFromArray(
      [{ a: 1 }, { a: 2 }, { a: 3 }],
      new Struct([new Field('a', new Int32(), true)]),
    ).data[0];
    const rows = rowsOf({ k: column('int32', [1, 2, 1]), x: lists, y: structs });
    const found = objectsOf(
      await whole(
        rows,
        ['k'],
        [named('last', 'last', 'x'), named('all', 'collectList', 'x'), named('y', 'first', 'y')],
      ),
    );
    expect(JSON.stringify(found)).toBe(
      JSON.stringify([
        { k: 1, last: [3], all: [[1, 2], [3]], y: { a: 1 } },
        { k: 2, last: null, all: [], y: { a: 2 } },
      ]),
    );
  });

  it('texts as views', async () => {
    const views = vectorFromArray(['b', 'a', 'b'], new Utf8View()).data[0];
    expect(
      objectsOf(await whole(rowsOf({ k: views }), ['k'], [named('n', 'count'), named('max', 'max', 'k')])),
    ).toEqual([
      { k: 'b', n: 2n, max: 'b' },
      { k: 'a', n: 1n, max: 'a' },
    ]);
  });
});
