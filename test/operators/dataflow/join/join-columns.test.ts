/** The columns of joins, and the texts of joins that do not fit. */
import { Field, Int32, Int64, List, Schema, Utf8 } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import type { JoinKind, JoinParams } from '../../../../operators/dataflow/join/join-columns.ts';
import { JoinRows } from '../../../../operators/dataflow/join/join-rows.ts';

const on = (...names: string[]) => ({ left: names, right: names });

describe('a join that does not fit', () => {
  const schema = (columns: Readonly<Record<string, Field['type']>>) =>
    new Schema(Object.entries(columns).map(([name, type]) => new Field(name, type, true)));
  const left = schema({ user: new Int32(), item: new Int32(), title: new Utf8() });
  const result = (right: Schema, keys: JoinParams['keys'], kind: JoinKind = 'inner') =>
    new JoinRows({ kind, build: 'right', keys }).outputSchema(left, right);

  it('says which columns there are', () => {
    expect(() => result(left, { left: ['item'], right: ['itm'] })).toThrow(
      'join: the right side has no column "itm". Did you mean item? The columns are: user, item, title',
    );
    expect(() => result(left, { left: ['film'], right: ['item'] })).toThrow(
      /the left side has no column "film"/,
    );
  });

  it('names both types of keys that differ', () => {
    expect(() => result(schema({ item: new Int64() }), on('item'))).toThrow(
      'join: the key "item" of the left is Int32, and "item" of the right is Int64. Cast one of them',
    );
    const list = schema({ user: new List(new Field('item', new Int32())) });
    expect(() =>
      new JoinRows({ kind: 'inner', build: 'left', keys: on('user') }).outputSchema(list, list),
    ).toThrow(/the key "user" is List<Int32>, whose values are not compared/);
  });

  it('advises another name where both sides have one', () => {
    expect(() => result(schema({ item: new Int32(), title: new Utf8() }), on('item'))).toThrow(
      /both sides have a column "title".*withColumnRenamed.*suffix: '_right'/,
    );
    expect(() =>
      result(schema({ id: new Int32(), item: new Int32() }), { left: ['item'], right: ['id'] }),
    ).toThrow(/both sides have a column "item"/);
    const both = schema({ item: new Int32(), title: new Utf8(), user: new Int32() });
    const suffixed = new JoinRows({ kind: 'inner', build: 'right', keys: on('item'), suffix: '' });
    expect(() => suffixed.outputSchema(left, both)).toThrow(/both sides have a column "title"/);
    const more = schema({ item: new Int32(), title: new Utf8(), title_2: new Utf8() });
    expect(() =>
      new JoinRows({ kind: 'inner', build: 'right', keys: on('item'), suffix: '_2' }).outputSchema(
        left,
        more,
      ),
    ).toThrow(/the column "title_2" twice/);
    expect(result(schema({ item: new Int32(), title: new Utf8() }), on('item'), 'anti').fields).toHaveLength(
      3,
    );
  });
});
