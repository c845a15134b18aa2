import type { Checked } from './check.ts';
import { textAt } from './cast.ts';
import type { Bound, Literal } from './expression.ts';
import { numbersOf, type Values } from './values.ts';

const mirrored = { '=': '=', '!=': '!=', '<': '>', '<=': '>=', '>': '<', '>=': '<=', '<=>': '<=>' } as const;

/**
 * Returns those conditions of a predicate that concern a single column and must hold in every selected row.
 * All other conditions are left out.
 */
export function boundsOf(predicate: Checked): Bound[] {
  if (predicate.kind !== 'call') return [];
  const { name, args } = predicate;
  if (name === 'and') return args.flatMap(boundsOf);
  const [left, right] = args;
  if (name === 'isNull' || name === 'isNotNull')
    return left.kind === 'column' ? [{ column: left.name, operator: name, values: [] }] : [];
  const constants = args.flatMap((arg) => (arg.kind === 'constant' ? [literalOf(arg.values)] : []));
  if (name === 'in' && left.kind === 'column')
    return [{ column: left.name, operator: name, values: constants }];
  if (!isComparison(name) || constants.length !== 1) return [];
  if (left.kind === 'column') return [{ column: left.name, operator: name, values: constants }];
  return right.kind === 'column' ? [{ column: right.name, operator: mirrored[name], values: constants }] : [];
}

function isComparison(name: string): name is keyof typeof mirrored {
  return Object.hasOwn(mirrored, name);
}

function literalOf(values: Values): Literal {
  const { type } = values;
  if (values.form === 'opaque' || values.valid?.[0] === 0) return { kind: 'literal', type, value: null };
  if (values.form === 'bool') return { kind: 'literal', type, value: values.values[0] === 1 };
  const number = numbersOf(values)[0];
  const isPlain =
    values.form === 'number' && !/^u?int64$|date|timestamp/.test(type) && Number.isFinite(number);
  return { kind: 'literal', type, value: isPlain ? number : textAt(values, 0) };
}
