#import update-tensor
