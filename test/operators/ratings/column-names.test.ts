/** Columns that are found by their names. */
import { Field, Float64, Int64, Schema, Utf8 } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import type { ColumnRole } from '../../../operators/ratings/rows/column-names.ts';
import { findColumns, pairColumns } from '../../../operators/ratings/rows/columns.ts';

const schemaOf = (...names: string[]) =>
  new Schema(
    names.map(
      (name) =>
        new Field(
          name,
          /title|name/.test(name) ? new Utf8() : /rating|score/.test(name) ? new Float64() : new Int64(),
        ),
    ),
  );
const all: readonly ColumnRole[] = ['user', 'item', 'rating', 'timestamp'];

describe('names of columns', () => {
  it.each([
    ['MovieLens', ['userId', 'movieId', 'rating', 'timestamp']],
    ['Amazon', ['reviewerID', 'asin', 'overall', 'unixReviewTime']],
    ['Book-Crossing', ['User-ID', 'ISBN', 'Book-Rating', 'date']],
    ['Yelp', ['user_id', 'business_id', 'stars', 'date']],
    ['a shop', ['customer_id', 'product_id', 'review_score', 'created_at']],
    ['short names', ['uid', 'iid', 'score', 'ts']],
  ])('of %s are recognised', (_of, [user, item, rating, time]) => {
    const { columns, recognised } = findColumns(
      schemaOf('index', user, 'title', item, rating, time),
      all,
      {},
    );
    expect(columns).toEqual({ user, item, rating, timestamp: time });
    expect(recognised.every((role) => columns[role] !== role)).toBe(true);
  });

  it('are the usual ones where they are there, whatever else is', () => {
    const { columns, recognised } = findColumns(
      schemaOf('userId', 'user', 'item', 'movieId', 'stars', 'rating', 'timestamp', 'date'),
      all,
      {},
    );
    expect([columns, recognised]).toEqual([
      { user: 'user', item: 'item', rating: 'rating', timestamp: 'timestamp' },
      [],
    ]);
  });

  it('are those that are said first, then the preferred ones that are there', () => {
    const schema = schemaOf('user', 'movieId', 'bookId', 'score', 'stars');
    expect(
      findColumns(schema, ['user', 'item', 'rating'], {
        named: { item: 'bookId' },
        preferred: { user: 'gone', rating: 'stars' },
      }).columns,
    ).toEqual({ user: 'user', item: 'bookId', rating: 'stars' });
    expect(findColumns(schemaOf('user', 'x'), ['user', 'item'], { preferred: { item: 'movieId' } })).toEqual({
      columns: { user: 'user', item: 'movieId' },
      recognised: [],
    });
  });

  it('are an error with the candidates and the option where several could be meant', () => {
    expect(() =>
      findColumns(schemaOf('user_id', 'asin', 'parent_asin', 'rating'), ['user', 'item'], {}),
    ).toThrow(
      'which column is the item? "asin" and "parent_asin" may be; there are: user_id (Int64), asin (Int64), parent_asin (Int64), rating (Float64)',
    );
    expect(() => findColumns(schemaOf('user', 'item', 'score', 'stars', 'overall_score'), all, {})).toThrow(
      /which column is the rating\? "score", "stars" and "overall_score" may be.*Name it with ratingCol/,
    );
    expect(
      findColumns(schemaOf('user_id', 'asin', 'parent_asin'), ['user', 'item'], { given: { item: 'asin' } })
        .columns,
    ).toEqual({ user: 'user_id', item: 'asin' });
  });

  it('must agree where data set and option both say one', () => {
    expect(() =>
      findColumns(schemaOf('a', 'b'), ['user'], { named: { user: 'a' }, given: { user: 'b' } }),
    ).toThrow('the data set names its user column "a", but userCol is "b"');
    expect(
      findColumns(schemaOf('a'), ['user'], { named: { user: 'a' }, given: { user: 'a' } }).columns,
    ).toEqual({ user: 'a' });
  });

  it('are not taken from titles, counts and ids of other things', () => {
    const { columns, recognised } = findColumns(
      schemaOf('username', 'rating_count', 'movie_title', 'review_id', 'timezone'),
      all,
      {},
    );
    expect([columns, recognised]).toEqual([
      { user: 'user', item: 'item', rating: 'rating', timestamp: 'timestamp' },
      [],
    ]);
  });
});

describe('the columns of a split', () => {
  it('are recognised, wherever they are', () => {
    expect(pairColumns(schemaOf('index', 'rating', 'movieId', 'userId'), {})).toEqual(['userId', 'movieId']);
    expect(pairColumns(schemaOf('product', 'userId', 'title'), {})).toEqual(['userId', 'product']);
  });

  it('are the first two ids where no name is known, and an error where one of those looks like a time or a rating', () => {
    expect(pairColumns(schemaOf('a', 'b', 'rating'), {})).toEqual(['a', 'b']);
    expect(() => pairColumns(schemaOf('ts', 'a', 'b'), {})).toThrow('which columns are user and item?');
    expect(() => pairColumns(schemaOf('user_id', 'customer_id', 'item'), {})).toThrow(
      'which column is the user? "user_id" and "customer_id" may be',
    );
  });
});
