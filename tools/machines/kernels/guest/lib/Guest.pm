# Building blocks of situations: the guest's kernel, a server, and comparisons of SQL with both.
package Guest;

use strict;
use warnings;

use parent 'Exporter';

use Guest::Compare;
use Guest::Machine;
use Guest::Server;
use HugeInfo::Kernel;

our @EXPORT = (@Guest::Compare::EXPORT, @Guest::Machine::EXPORT, @Guest::Server::EXPORT, @HugeInfo::Kernel::EXPORT);

sub import { strict->import; warnings->import; goto &Exporter::import }

1;
