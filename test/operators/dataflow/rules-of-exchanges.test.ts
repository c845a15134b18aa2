/** The rule that asks conditions before rows are exchanged. */
import { describe, expect, it } from 'vitest';
import { fromSource, operatorsOf } from '../../../engine/stream/logical-plan.ts';
import { rules } from '../../../operators/dataflow/optimize.ts';
import {
  Distinct,
  GroupRows,
  Repartition,
  Wide,
  type WideOperator,
} from '../../../operators/exchange/wide-operators.ts';
import { filter, Rows, schema, select, textOf } from './rule-testing.ts';

describe('push into exchanges', () => {
  const pushed = (operator: WideOperator, text: string) => {
    const chain = { source: new Wide(operator, [fromSource(new Rows())]), schema, operators: [filter(text)] };
    const { source, operators } = rules['push into exchanges'](chain);
    return [operatorsOf((source as Wide).inputs[0]), operators].map((all) => all.map(textOf).join());
  };

  it('asks conditions on keys of the rows that are grouped, and others of the groups', () => {
    const groups = new GroupRows({ keys: ['a'], aggregations: [{ name: 'n', call: 'count' }] });
    expect(pushed(groups, 'a > 1 and n > 2')).toEqual(['filter a > 1', 'filter n > 2']);
    expect(pushed(groups, 'a > n')).toEqual(['', 'filter a > n']);
    // Without rows there is one row without keys.
    const all = new GroupRows({ keys: [], aggregations: [{ name: 'n', call: 'count' }] });
    expect(pushed(all, '1 > 2')).toEqual(['', 'filter 1 > 2']);
  });

  it('asks conditions of all rows where each row of the result is one of them', () => {
    expect(pushed(new Distinct(), 'f > 1 and t is not null')).toEqual(['filter f > 1 and t is not null', '']);
    expect(pushed(new Distinct(['a']), 'a > 1 and f > 1')).toEqual(['filter a > 1', 'filter f > 1']);
    expect(pushed(new Repartition(3, ['a']), 'f > 1')).toEqual(['filter f > 1', '']);
  });
});

describe('prune aggregates', () => {
  const value = { kind: 'column', name: 'x' } as const;
  const aggregations = [
    { name: 'n', call: 'count' },
    { name: 'sum', call: 'sum', value },
    { name: 'most', call: 'max', value },
  ] as const;
  const left = (keys: readonly string[], columns: Readonly<Record<string, string>>, wanted?: string[]) => {
    const groups = new GroupRows({ keys, aggregations });
    const source = new Wide(groups, [fromSource(new Rows())]);
    const chain = { source, schema: groups.outputSchema(schema), operators: [select(columns)] };
    const pruned = rules['prune aggregates']({ ...chain, ...(wanted && { wanted }) });
    expect(pruned.schema).toEqual((pruned.source as Wide).operator.outputSchema(schema));
    return String(pruned.source.describe().aggregates);
  };

  it('leaves out those that are not needed after a grouping', () => {
    expect(left(['a'], { a: 'a', twice: '2 * sum' })).toBe('sum(x) as sum');
    expect(left(['a'], { a: 'a', twice: '2 * sum', most: 'most' }, ['most'])).toBe(
      'sum(x) as sum,max(x) as most',
    );
    expect(left(['a'], { a: 'a' })).toBe('');
    expect(left(['a'], { n: 'n', sum: 'sum', most: 'most' })).toBe(
      'count(*) as n,sum(x) as sum,max(x) as most',
    );
  });

  it('keeps one where there are no keys', () => {
    expect(left([], { one: '1' })).toBe('count(*) as n');
    expect(left([], { most: 'most' })).toBe('max(x) as most');
  });
});
