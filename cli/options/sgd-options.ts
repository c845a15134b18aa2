import { rateNames, scheduleNames, sgdDefaults } from '../../operators/sgd/params.ts';
import { choice, decimal, text } from './kinds.ts';

/** What only --algorithm sgd takes. None has a value of its own here, so that one that is given without it is found out. */
export const sgdOptions = {
  learningRate: decimal({ describe: 'sgd: rate α of the first epoch, for ratings of deviation 1', group: 'Model:', above: 0, defaultText: String(sgdDefaults.learningRate) }),
  decay: decimal({ describe: 'sgd: β of the rate paper, α / (1 + β t^1.5)', group: 'Model:', least: 0, defaultText: String(sgdDefaults.decay) }),
  rate: choice({ describe: "sgd: how the rate goes on; by the loss (bold), by each row's gradients (adagrad)", group: 'Model:', choices: rateNames, defaultText: sgdDefaults.rate }),
  schedule: choice({ describe: 'sgd: which ratings are visited when, and by which worker; tile is for GPUs', group: 'Model:', choices: scheduleNames, defaultText: sgdDefaults.schedule }),
  regParamUsers: decimal({ describe: 'sgd: λ of users', group: 'Model:', least: 0, defaultText: '--reg-param' }),
  regParamItems: decimal({ describe: 'sgd: λ of items', group: 'Model:', least: 0, defaultText: '--reg-param' }),
};

/** Of `train` alone. */
export const initModelOption = text({ describe: "sgd: model to go on from, with these ratings as new ones: 2 epochs from a rate of 0.002, and λ for new users and items alone, the model's, where nothing else is said", group: 'Model:' });
