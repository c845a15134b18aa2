import { rateNames, scheduleNames, sgdDefaults } from '../../operators/sgd/params.ts';
import { choice, decimal, text } from './kinds.ts';

/** Flags of --algorithm sgd alone. None has a fallback, so that one given with another algorithm is noticed. */
export const sgdOptions = {
  learningRate: decimal({ describe: 'sgd: rate α of the first epoch, for ratings of deviation 1', group: 'Model:', above: 0, defaultText: String(sgdDefaults.learningRate) }),
  decay: decimal({ describe: 'sgd: β of the rate paper, α / (1 + β t^1.5)', group: 'Model:', least: 0, defaultText: String(sgdDefaults.decay) }),
  rate: choice({ describe: "sgd: course of the rate over the epochs; by the loss (bold), by each row's gradients (adagrad)", group: 'Model:', choices: rateNames, defaultText: sgdDefaults.rate }),
  schedule: choice({ describe: 'sgd: order in which workers visit the ratings; tile is for GPUs', group: 'Model:', choices: scheduleNames, defaultText: sgdDefaults.schedule }),
  regParamUsers: decimal({ describe: 'sgd: λ of users', group: 'Model:', least: 0, defaultText: '--reg-param' }),
  regParamItems: decimal({ describe: 'sgd: λ of items', group: 'Model:', least: 0, defaultText: '--reg-param' }),
};

/** Only of `train` and `plan`. */
export const initModelOption = text({ describe: "sgd: model to go on from with these ratings as new ones; by default 2 epochs from a rate of 0.002, and the model's λ for new users and items alone", group: 'Model:' });
