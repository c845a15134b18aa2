import { expr } from '../../api/parse-column.ts';
import { UsageError } from '../../engine/errors.ts';
import type { ItemFilter, ItemFilters } from '../../index.ts';
import type { LoadedModel } from './loaded-model.ts';

/** Conditions that were found to be fast, so that they are parsed once. */
const checked = new WeakMap<ItemFilters, Set<string>>();
const MOST_ACCEPTED = 1000;

/** The items that a request asks for; undefined for all. */
export function filterOf({ filters }: LoadedModel, condition: string | undefined): ItemFilter | undefined {
  if (condition === undefined) return undefined;
  if (filters === undefined)
    throw new UsageError('this server has no attributes of items, so filter cannot be used', {
      advice: 'Start it with --items FILE',
    });
  let accepted = checked.get(filters);
  if (accepted === undefined) checked.set(filters, (accepted = new Set()));
  if (!accepted.has(condition)) {
    refuseSlow(expr(condition).expression);
    if (accepted.size === MOST_ACCEPTED) accepted.clear();
    accepted.add(condition);
  }
  return filters.where(condition);
}

type Tree = ReturnType<typeof expr>['expression'];

/** Most `_` of a pattern: at each place of a text, as many characters may be compared. */
const MOST_WILDCARDS = 16;

/** Most functions of a condition that make a text for each item, and most patterns of `like`. */
const MOST_TEXTS = 4;
const MOST_PATTERNS = 8;

/** Most copies of an attribute in a text that a condition makes, and most other characters of that text. */
const MOST_COPIES = 8;
const MOST_CHARACTERS = 2000;

/** Longest text of a number, a date or a truth. */
const NUMBER_LENGTH = 32;

/** A text has at most `copies` times the characters of the longest attribute, and `own` others. */
interface Size {
  readonly copies: number;
  readonly own: number;
}

const makers: readonly string[] = ['lower', 'upper', 'trim', 'concat', 'substring', 'replace', 'splitPart'];

/** Throws UsageError for a condition whose time or memory could stop all requests. */
function refuseSlow(tree: Tree): void {
  const made = { texts: 0, patterns: 0 };
  sizeOf(tree, made);
  if (made.patterns > MOST_PATTERNS)
    throw new UsageError(`filter takes at most ${MOST_PATTERNS} patterns of like`);
  if (made.texts > MOST_TEXTS)
    throw new UsageError(`filter takes at most ${MOST_TEXTS} functions and casts that make a text`);
}

interface Made {
  texts: number;
  patterns: number;
}

function sizeOf(tree: Tree, made: Made): Size {
  switch (tree.kind) {
    case 'column':
      return { copies: 1, own: 0 };
    case 'literal':
      return { copies: 0, own: String(tree.value).length };
    case 'cast': {
      made.texts++;
      const { copies, own } = sizeOf(tree.value, made);
      return { copies, own: Math.max(own, NUMBER_LENGTH) };
    }
    case 'when': {
      for (const { when } of tree.branches) sizeOf(when, made);
      const values = tree.branches.map(({ value }) => sizeOf(value, made));
      return largest(tree.otherwise === undefined ? values : [...values, sizeOf(tree.otherwise, made)]);
    }
    case 'call':
      return requireSmall(sizeOfCall(tree, made));
  }
}

function sizeOfCall({ name, args }: Extract<Tree, { kind: 'call' }>, made: Made): Size {
  if (name === 'jsonText') throw new UsageError('filter takes no JSON');
  if (name === 'rlike' || name.startsWith('regexp'))
    throw new UsageError('filter takes no regular expressions', {
      advice: "Use contains(a, 'text'), startsWith, endsWith or like",
    });
  if (name === 'like') {
    refuseWildcards(args[1]);
    made.patterns++;
  }
  if (makers.includes(name)) made.texts++;
  const sizes = args.map((arg) => sizeOf(arg, made));
  if (name === 'concat')
    return sizes.reduce((sum, { copies, own }) => ({ copies: sum.copies + copies, own: sum.own + own }));
  return name === 'replace' && sizes.length === 3 ? replaced(sizes[0], args[1], sizes[2]) : largest(sizes);
}

/** Each place of the text may have the searched part, and gets the replacement. */
function replaced({ copies, own }: Size, search: Tree, by: Size): Size {
  const least = search.kind === 'literal' ? Math.max(1, String(search.value).length) : 1;
  const growth = by.copies > 0 ? Infinity : Math.max(1, by.own / least);
  return { copies: copies && copies * growth, own: own && own * growth };
}

function largest(sizes: readonly Size[]): Size {
  const most = (of: (size: Size) => number) => Math.max(0, ...sizes.map(of));
  return { copies: most(({ copies }) => copies), own: most(({ own }) => own) };
}

function requireSmall(size: Size): Size {
  if (size.copies > MOST_COPIES || size.own > MOST_CHARACTERS)
    throw new UsageError('filter makes texts that could be too long', {
      advice: 'Use fewer columns in concat, and shorter texts in replace',
    });
  return size;
}

function refuseWildcards(pattern: Tree | undefined): void {
  if (pattern?.kind !== 'literal') throw new UsageError('filter takes like with a constant pattern alone');
  if (String(pattern.value).split('_').length - 1 > MOST_WILDCARDS)
    throw new UsageError(`filter takes at most ${MOST_WILDCARDS} _ in a pattern`);
}
