import { tuneOptions } from '../options/training/tune-options.ts';
import { defineCommand, inputFiles, words } from './command.ts';

export const command = defineCommand({
  summary: 'Search for good parameters and train with the best',
  positionals: [words('ratings', inputFiles)],
  options: tuneOptions,
  examples: [
    ['tune ratings/ --model-dir model', 'thirty trials of the usual parameters'],
    [
      "tune ratings/ --model-dir model --try 'rank=8,16,32 reg-param=0.01,0.03,0.1'",
      'all combinations of these',
    ],
    [
      "tune ratings/ --model-dir model --search halving --trials 81 --try 'rank=4..128 reg-param=0.002..0.5'",
      'many trials, most of them short',
    ],
    [
      'tune plays/ --model-dir model --implicit --metric ndcg@20 --report search.html',
      'by the quality of rankings, with a report page',
    ],
    ['tune ratings/ --model-dir model --resume', 'continue after an interruption'],
  ],
  epilog:
    'Ratings are read, numbered and sorted once for all trials. The same ratings, flags and seed try the same parameters with the same results.',
  run: async ({ values, given, positionals }, context) => {
    const { runSearch } = await import('../sessions/run-search.ts');
    return runSearch({ values, given, ratings: positionals.ratings }, context);
  },
});
