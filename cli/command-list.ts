import type { Command } from './commands/command.ts';

/** A command by name and summary. Its code is loaded when it is chosen. */
export interface CommandEntry {
  readonly name: string;
  /** Words after the name, in yargs' notation. */
  readonly words: string;
  readonly summary: string;
  readonly load: () => Promise<Command>;
}

export const commandList: readonly CommandEntry[] = [
  {
    name: 'train',
    words: '<ratings..>',
    summary: 'Train a factor model on ratings',
    load: async () => (await import('./commands/train.ts')).train,
  },
  {
    name: 'tune',
    words: '<ratings..>',
    summary: 'Search for good parameters and train with the best',
    load: async () => (await import('./commands/tune.ts')).tune,
  },
  {
    name: 'evaluate',
    words: '<model> <ratings..>',
    summary: "Compare a model's predictions with known ratings",
    load: async () => (await import('./commands/evaluate.ts')).evaluate,
  },
  {
    name: 'predict',
    words: '<model> <pairs..>',
    summary: 'Predict the ratings of pairs of users and items',
    load: async () => (await import('./commands/serving/predict.ts')).predict,
  },
  {
    name: 'recommend',
    words: '<model>',
    summary: 'Find the best items for all users or some',
    load: async () => (await import('./commands/serving/recommend.ts')).recommend,
  },
  {
    name: 'similar',
    words: '<model>',
    summary: 'Find the items or users most similar to given ones',
    load: async () => (await import('./commands/serving/similar.ts')).similar,
  },
  {
    name: 'fold-in',
    words: '<model> <ratings..>',
    summary: 'Solve new users from their ratings',
    load: async () => (await import('./commands/serving/fold-in.ts')).foldIn,
  },
  {
    name: 'explain',
    words: '<model> <ratings..>',
    summary: "Show what each of a user's ratings contributes to a score",
    load: async () => (await import('./commands/serving/explain.ts')).explain,
  },
  {
    name: 'index',
    words: '<model>',
    summary: 'Build the index of a model with a large catalogue',
    load: async () => (await import('./commands/serving/build-index.ts')).buildIndex,
  },
  {
    name: 'serve',
    words: '<model>',
    summary: 'Answer requests for recommendations over HTTP',
    load: async () => (await import('./commands/serving/serve.ts')).serve,
  },
  {
    name: 'export',
    words: '<model>',
    summary: "Write a model's factors for other programs",
    load: async () => (await import('./commands/data/export.ts')).exportFactors,
  },
  {
    name: 'inspect',
    words: '<ratings..>',
    summary: 'Describe a data set or a model',
    load: async () => (await import('./commands/data/inspect.ts')).inspect,
  },
  {
    name: 'convert',
    words: '<paths..>',
    summary: 'Copy ratings into another format',
    load: async () => (await import('./commands/data/convert.ts')).convert,
  },
  {
    name: 'split',
    words: '<ratings..>',
    summary: 'Write the parts of ratings to train and to test on',
    load: async () => (await import('./commands/data/split.ts')).split,
  },
  {
    name: 'plan',
    words: '[paths..]',
    summary: 'Show what a training run would do, and why',
    load: async () => (await import('./commands/plan.ts')).plan,
  },
  {
    name: 'generate',
    words: '',
    summary: 'Write a synthetic data set',
    load: async () => (await import('./commands/data/generate.ts')).generate,
  },
  {
    name: 'doctor',
    words: '[ratings..]',
    summary: 'Show versions, processor, memory and GPU; check and tune its kernels',
    load: async () => (await import('./commands/doctor.ts')).doctor,
  },
  {
    name: 'worker',
    words: '',
    summary: 'Train for a parent process: Arrow in, events and factors out',
    load: async () => (await import('./commands/worker.ts')).worker,
  },
  {
    name: 'completion',
    words: '[shell]',
    summary: 'Print a script that completes commands and flags in a shell',
    load: async () => (await import('./commands/completion.ts')).completion,
  },
];
