/** Each rule of the optimizer by itself: a chain of operators, and the chain that it gives. */
import { Field, Float32, Int32, Schema } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { parseExpression } from '../../../connectors/expressions/parse-expression.ts';
import { fromSource, type LogicalPlan, operatorsOf, schemaOf } from '../../../engine/stream/logical-plan.ts';
import type { Operator, Source } from '../../../engine/stream/operator.ts';
import { batchStream } from '../../../engine/stream/stream.ts';
import { CountRows } from '../../../operators/dataflow/count-rows.ts';
import { DropNulls } from '../../../operators/dataflow/drop-nulls.ts';
import { Filter } from '../../../operators/dataflow/filter.ts';
import type { JoinKind } from '../../../operators/dataflow/join/join-columns.ts';
import { Joined } from '../../../operators/dataflow/join/joined.ts';
import { MapBatches } from '../../../operators/dataflow/map-batches.ts';
import { rules } from '../../../operators/dataflow/optimize.ts';
import { Project } from '../../../operators/dataflow/project.ts';
import { Sample } from '../../../operators/dataflow/sample.ts';
import { SortRows } from '../../../operators/dataflow/sort-rows.ts';
import { Limit } from '../../../operators/dataflow/top-rows.ts';
import { Union } from '../../../operators/dataflow/union.ts';
import { computed, filter, Rows, schema, select, textOf } from './rule-testing.ts';

/** The chain that a rule makes of another, as text. */
function applied(rule: string, operators: readonly Operator[], wanted?: readonly string[]): string[] {
  const chain = { source: new Rows(), schema, operators, ...(wanted && { wanted }) };
  return rules[rule](chain).operators.map(textOf);
}

describe('resolve columns', () => {
  it('makes a filter and a projection of a filter that leaves out columns', () => {
    const kept = new Filter(parseExpression('a > 1'), ['x', 'f']);
    expect(applied('resolve columns', [kept])).toEqual(['filter a > 1', 'select f,x']);
  });

  it('writes projections as lists of all columns', () => {
    expect(
      applied('resolve columns', [
        computed({ y: 'a + 1' }),
        new Project({ kind: 'drop', names: ['t', 'x'] }),
        new Project({ kind: 'rename', from: 'f', to: 'g' }),
      ]),
    ).toEqual(['select a,f,x,t,a + 1 as y', 'select a,f,y', 'select a,f as g,y']);
  });
});

it('thousands of added columns become one projection, unless one reads another', () => {
  const added = Array.from({ length: 3000 }, (_, i) => computed({ [`c${i}`]: 'a + 1' }));
  const [first, last, ...more] = applied('resolve columns', [...added, computed({ y: 'c2 + 1' })]);
  expect([first.split(',').length, last.split(',').length, more.length]).toEqual([3004, 3005, 0]);
});

it('a chain of joins asks each source for its columns once', async () => {
  let asked = 0;
  class Counted extends Rows {
    override async schema() {
      asked++;
      return schema;
    }
  }
  const keys = { left: ['a'], right: ['a'] };
  const input = () => fromSource(new Counted());
  const chain = Array.from({ length: 20 }).reduce<LogicalPlan>(
    (plan) =>
      fromSource(new Joined([plan, input()], { kind: 'semi', keys, build: 'right' }, async (ready) => ready)),
    input(),
  );
  await schemaOf(chain);
  expect(asked).toBe(21);
});

describe('push filters', () => {
  it('joins filters, and moves parts before what does not change their columns', () => {
    const wide = select({ b: 'a', f: 'f', y: 'x * 2' });
    expect(applied('push filters', [wide, filter('b > 1 and y > 3'), filter('f < 2')])).toEqual([
      'filter a > 1 and f < 2',
      'select a as b,f,x * 2 as y',
      'filter y > 3',
    ]);
    expect(applied('push filters', [new DropNulls(), new Sample(0.5, { seed: 1 }), filter('a > 1')])[0]).toBe(
      'filter a > 1',
    );
  });

  it('goes before a sort', () => {
    const sort = new SortRows([{ column: 'x' }]);
    expect(applied('push filters', [sort, filter('a > 1')])).toEqual(['filter a > 1', 'sort-rows by x']);
  });

  it('stays after limits and functions', () => {
    for (const stop of [new Limit(3), new MapBatches((batch) => batch)])
      expect(applied('push filters', [stop, filter('a > 1')])[1]).toBe('filter a > 1');
  });

  it('asks a condition that may fail of no row that a condition or an operator before it leaves out', () => {
    const number = "t ~ '^[0-9]+$'";
    const tested = select({ t: 't', ok: number });
    expect(applied('push filters', [tested, filter('ok and cast(t as int) > 3')])).toHaveLength(2);
    expect(applied('push filters', [new DropNulls(['x']), filter('cast(t as int) > 3')])[0]).toMatch(/^drop/);
    expect(applied('push filters', [select({ t: 't' }), filter('cast(t as int) > 3')])[0]).toMatch(/^filter/);
    expect(applied('push filters', [filter(number), filter('cast(t as int) > 3')])).toHaveLength(1);
  });
});

describe('push limits', () => {
  it('moves small limits before projections, and joins two in a row', () => {
    expect(applied('push limits', [computed({ y: 'a + 1' }), new Limit(9), new Limit(4)])).toEqual([
      'limit rows 4',
      'with a + 1 as y',
    ]);
    expect(applied('push limits', [select({ a: 'a' }), new Limit(1 << 20)])[0]).toBe('select a');
    expect(applied('push limits', [filter('a > 1'), new Limit(4)])[0]).toBe('filter a > 1');
  });
});

describe('take top rows', () => {
  const sort = (...columns: string[]) => new SortRows(columns.map((column) => ({ column })));

  it('takes the first sorted rows of each split, then of all', () => {
    expect(applied('take top rows', [filter('a > 1'), sort('a'), new Limit(5), select({ a: 'a' })])).toEqual([
      'filter a > 1',
      'top-rows rows 5,by a,of each split',
      'top-rows rows 5,by a',
      'select a',
    ]);
    expect(applied('take top rows', [sort('a'), new Limit(2 ** 21)])).toEqual([
      'sort-rows by a',
      `limit rows ${2 ** 21}`,
    ]);
    expect(applied('take top rows', [new Limit(5), sort('a')])[1]).toBe('sort-rows by a');
  });
});

describe('join sorts', () => {
  const sort = (...columns: string[]) => new SortRows(columns.map((column) => ({ column })));

  it('sorts once by the keys of all sorts in a row', () => {
    expect(applied('join sorts', [sort('a', 'f'), sort('x', 'a'), select({ a: 'a' })])).toEqual([
      'sort-rows by x,a,f',
      'select a',
    ]);
    expect(applied('join sorts', [sort('a'), new Limit(3), sort('x')])).toHaveLength(3);
    expect(applied('join sorts', [sort('a'), sort('x', 'x')])).toEqual(['sort-rows by x,a']);
  });

  it('does not sort rows that are counted', () => {
    expect(applied('join sorts', [sort('a'), filter('a > 1'), new CountRows()])).toEqual([
      'filter a > 1',
      'count-rows ',
    ]);
    expect(applied('join sorts', [sort('a'), new Limit(3), new CountRows()])).toHaveLength(3);
  });
});

describe('merge projections', () => {
  it('computes two in a row as one, unless an expression would be computed twice', () => {
    expect(applied('merge projections', [select({ y: 'a + 1' }), select({ z: 'y * 2' })])).toEqual([
      'select (a + 1) * 2 as z',
    ]);
    expect(applied('merge projections', [select({ y: 'a + 1' }), select({ z: 'y * y' })])).toHaveLength(2);
    const [deep, deeper] = [250, 251].map((terms) => Array(terms).fill('a').join(' + '));
    const outer = select({ z: deep.replaceAll('a', '1').replace('1', 'y') });
    expect(applied('merge projections', [select({ y: deep }), outer])).toHaveLength(1);
    expect(applied('merge projections', [select({ y: deeper }), outer])).toHaveLength(2);
  });

  it('keeps the types of constants, which inside an expression would take those of the values next to them', () => {
    const [merged] = applied('merge projections', [
      select({ f: 'f', k: '3.3', m: '-3.3' }),
      select({ z: 'f <= k', n: 'f <= m', k: 'k' }),
    ]);
    expect(merged).toMatch(/f <= cast\(3\.3 as \w+\) as z,f <= cast\(-3\.3 as \w+\) as n,3\.3 as k/i);
  });
});

describe('prune columns', () => {
  it('leaves out what no reader needs, of filters too', () => {
    const chain = [select({ a: 'a', y: 'x * 2', z: 'x + 1' }), filter('y > 1')];
    expect(applied('prune columns', chain, ['a'])[0]).toBe('select a,x * 2 as y');
    expect(applied('prune columns', [select({ a: 'a', t: 't' })], [])[0]).toBe('select ');
    expect(applied('prune columns', [select({ y: 'a + 1', t: 't' })], [])[0]).toBe('select a + 1 as y');
    const pruned = rules['prune columns']({ source: new Rows(), schema, operators: chain, wanted: ['a'] });
    const [below, kept] = pruned.operators;
    expect(kept.outputSchema(below.outputSchema(schema)).fields.map(({ name }) => name)).toEqual(['a']);
    const all = rules['prune columns']({ source: new Rows(), schema, operators: chain, wanted: ['y'] });
    expect(all.operators[1]).toBe(chain[1]);
    expect(applied('prune columns', [select({ a: 'a', t: 't' }), new DropNulls()], ['a'])[0]).toBe(
      'select a,t',
    );
  });
});

describe('drop what does nothing', () => {
  it('leaves out whole samples, true filters and all columns in their order', () => {
    const all = { a: 'a', f: 'f', x: 'x', t: 't' };
    const idle = [select(all), filter('true'), new Sample(1, { seed: 0 })];
    expect(applied('drop what does nothing', idle)).toEqual([]);
    expect(applied('drop what does nothing', [select({ f: 'f', a: 'a', x: 'x', t: 't' })])).toHaveLength(1);
  });
});

describe('push into joins', () => {
  const plain = (names: string) =>
    new Schema([...names].map((name) => new Field(name, name === 'f' ? new Float32() : new Int32(), true)));
  const sourceOf = (own: Schema): Source => ({
    name: 'rows',
    replayable: true,
    describe: () => ({}),
    schema: async () => own,
    execute: async () => batchStream(own, (async function* () {})()),
  });
  const pushed = async (how: JoinKind, predicate: string) => {
    const keys = { left: ['k', 'f'], right: ['q', 'f'] };
    const inputs = [fromSource(sourceOf(plain('kfxz'))), fromSource(sourceOf(plain('qfyz')))] as const;
    const join = new Joined(inputs, { kind: how, keys, build: 'right', suffix: '_r' }, async (plan) => plan);
    const own = await schemaOf(fromSource(join));
    const chain = { source: join, schema: own, operators: [filter(predicate), new Limit(1)] };
    const result = rules['push into joins'](chain);
    const texts = (result.source as Joined).inputs.map((plan) => operatorsOf(plan).map(textOf).join());
    return [...texts, ...result.operators.slice(0, -1).map(textOf)];
  };

  it('asks each input the conditions on its columns, under its names', async () => {
    expect(await pushed('inner', 'x > 1 and y > 2 and z_r > 3 and z > 4 and x > y')).toEqual([
      'filter x > 1 and z > 4',
      'filter y > 2 and z > 3',
      'filter x > y',
    ]);
    expect(await pushed('left', 'x > 1 and y > 2')).toEqual(['filter x > 1', '', 'filter y > 2']);
    expect(await pushed('right', 'x > 1 and y > 2')).toEqual(['', 'filter y > 2', 'filter x > 1']);
    expect(await pushed('full', 'x > 1 and y > 2')).toEqual(['', '', 'filter x > 1 and y > 2']);
    expect(await pushed('semi', 'x > 1')).toEqual(['filter x > 1', '']);
    expect(await pushed('anti', 'x > 1 and k > 1')).toEqual(['filter x > 1 and k > 1', '']);
  });

  it('asks both inputs conditions on keys, unless equal values may have other bits', async () => {
    for (const how of ['inner', 'left', 'right', 'full'] as const)
      expect(await pushed(how, 'k > 1')).toEqual(['filter k > 1', 'filter q > 1']);
    expect(await pushed('inner', 'f > 1')).toEqual(['filter f > 1', '']);
    expect(await pushed('right', 'f > 1')).toEqual(['', 'filter f > 1']);
    expect(await pushed('full', 'f > 1')).toEqual(['', '', 'filter f > 1']);
  });

  it('leaves a condition that may fail after the join', async () => {
    expect(await pushed('inner', 'cast(cast(x as utf8) as int32) > 1 and k > 1')).toEqual([
      'filter k > 1',
      'filter q > 1',
      'filter cast(cast(x as utf8) as int32) > 1',
    ]);
  });
});

describe('push into unions', () => {
  it('gives each input the operators that see each row by itself, on columns in the order of the first', () => {
    const union = new Union([fromSource(new Rows()), fromSource(new Rows())], async (plan) => plan);
    const chain = (operators: readonly Operator[]) => ({ source: union, schema, operators });
    const moved = [filter('a > 1'), select({ y: 'x * 2' }), new Sample(0.5, { seed: 1 }), new DropNulls()];
    const pushed = rules['push into unions'](chain([...moved, new Limit(2), filter('y > 1')]));
    expect(pushed.operators.map(textOf)).toEqual(['limit rows 2', 'filter y > 1']);
    expect(pushed.schema.fields.map(({ name }) => name)).toEqual(['y']);
    const { inputs } = pushed.source as Union;
    for (const input of inputs)
      expect(operatorsOf(input).map(textOf)).toEqual(['select a,f,x,t', ...moved.map(textOf)]);
    const stopped = chain([new MapBatches((batch) => batch), filter('a > 1')]);
    expect(rules['push into unions'](stopped)).toBe(stopped);
  });
});

describe('push bounds to the source', () => {
  it('gives the source the bounds of the first filter, which stays', () => {
    const chain = { source: new Rows(), schema, operators: [filter('a >= 2 and x + 1 > 3')] };
    const pushed = rules['push bounds to the source'](chain);
    expect(pushed.operators).toHaveLength(1);
    expect(pushed.source).toMatchObject({ bounds: [{ column: 'a' }] });
    const later = { source: new Rows(), schema, operators: [new Limit(1), filter('a >= 2')] };
    expect(rules['push bounds to the source'](later).source).toMatchObject({ bounds: [] });
  });
});
