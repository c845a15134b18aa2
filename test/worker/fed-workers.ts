/** Feeds of ratings to the command worker. */
import { numberedRatings } from '../support/numbered-ratings.ts';
import { type Ended, ratingStream } from '../support/worker-parent.ts';

export const triples = numberedRatings(3000);
export const rows = triples.users.length;
export const stream = ratingStream(triples);
export const errorOf = ({ frames }: Ended) => frames.at(-1)?.header ?? {};
