/** The rule that asks conditions before rows are exchanged. */
import { describe, expect, it } from 'vitest';
import { fromSource, operatorsOf } from '../../../engine/stream/logical-plan.ts';
import { rules } from '../../../operators/dataflow/optimize.ts';
import { Distinct } from '../../../operators/exchange/distinct.ts';
import { GroupRows } from '../../../operators/exchange/group-rows.ts';
import { Repartition } from '../../../operators/exchange/repartition.ts';
import { Wide, type WideOperator } from '../../../operators/exchange/wide.ts';
import { filter, Rows, schema, textOf } from './rule-testing.ts';

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
