# Exporters and Prometheus as users run them, each on its own port on loopback, and their responses.
# They end with the object.
package HugeInfo::Exporters;

use strict;
use warnings;

use Exporter 'import';
use HTTP::Tiny;
use IPC::Run ();
use JSON::PP ();
use PostgreSQL::Test::Utils;
use Time::HiRes qw(sleep);

use HugeInfo::Tools;

our @EXPORT = qw(edited started postgres_exporter justwatch prometheus);

# Copies a generated file with some changes, each a [pattern, replacement] that has to match.
sub edited
{
	my ($name, @changes) = @_;
	my $text = slurp_file(source("target/monitoring/$name"));
	for (@changes)
	{
		my ($from, $by) = @$_;
		$text =~ s/$from/ref $by ? $by->() : $by/ge or die "$name: does not contain $from\n";
	}
	my $path = PostgreSQL::Test::Utils::tempdir() . '/' . ($name =~ s{/}{_}gr);
	append_to_file($path, $text);
	return $path;
}

# Returns when its page responds.
sub started
{
	my ($page, $make) = @_;
	my $self = bless { port => PostgreSQL::Test::Cluster::get_free_port() }, __PACKAGE__;
	# A process blocks if it writes to a pipe that is not read.
	$self->{log} = PostgreSQL::Test::Utils::tempdir() . "/$self->{port}.log";
	my ($command, %environment) = $make->("127.0.0.1:$self->{port}");
	local %ENV = (%ENV, %environment);
	$self->{run} = IPC::Run::start($command, '<', '/dev/null', '>', $self->{log}, '2>&1');
	for (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return $self if $self->get($page)->{success};
		last unless $self->{run}->pumpable;
		sleep 0.1;
	}
	die "$command->[0] does not respond: @{[ $self->log ]}\n";
}

sub address { my ($self) = @_; return "127.0.0.1:$self->{port}" }

sub get { my ($self, $page) = @_; return HTTP::Tiny->new(timeout => 30)->get('http://' . $self->address . $page) }

# Returns the log so far.
sub log { my ($self) = @_; return slurp_file($self->{log}) }

sub text
{
	my ($self) = @_;
	my $answer = $self->get('/metrics');
	die "no metrics: $answer->{content}\n" unless $answer->{success};
	return $answer->{content};
}

# Returns series => value for names that begin with a prefix. Labels are sorted, and those in the
# list are omitted.
sub samples
{
	my ($self, $prefix, @without) = @_;
	my %samples;
	for (split /\n/, $self->text)
	{
		my ($name, undef, $labels, $value) = /^($prefix\w*)(\{(.*)\})? (\S+)$/ or next;
		my %labels = ($labels // '') =~ /(\w+)="((?:[^"\\]|\\.)*)"/g;
		delete @labels{@without};
		$samples{ "$name\{" . join(',', map { "$_=\"$labels{$_}\"" } sort keys %labels) . '}' } = $value + 0;
	}
	return \%samples;
}

sub stop { my ($self) = @_; my $run = delete $self->{run} or return; $run->kill_kill(grace => 5); return }
sub DESTROY { my ($self) = @_; local ($?, $@); eval { $self->stop }; return }

# Debian's postgres_exporter with the queries of a file, as the role "monitoring".
sub postgres_exporter
{
	my ($node, $file) = @_;
	return started('/metrics', sub {
		my ($address) = @_;
		my $command = [ tool('prometheus-postgres-exporter'), "--web.listen-address=$address", "--extend.query-path=$file",
			'--disable-default-metrics', '--disable-settings-metrics' ];
		return ($command, DATA_SOURCE_NAME => 'host=' . $node->host . ' port=' . $node->port . ' user=monitoring dbname=postgres');
	});
}

# Debian's sql_exporter, which is justwatch's.
sub justwatch
{
	my ($node, $file) = @_;
	return started('/metrics', sub {
		my ($address) = @_;
		my $url = 'postgres://monitoring@/postgres?host=' . $node->host . '&port=' . $node->port . '&sslmode=disable';
		return ([ tool('prometheus-sql-exporter'), "-web.listen-address=$address", "-config.file=$file" ], HUGEINFO_URL => $url);
	});
}

sub prometheus
{
	my ($configuration) = @_;
	my $directory = PostgreSQL::Test::Utils::tempdir();
	append_to_file("$directory/prometheus.yml", $configuration);
	return started('/-/ready', sub {
		my ($address) = @_;
		return [ tool('prometheus'), "--config.file=$directory/prometheus.yml", "--storage.tsdb.path=$directory/data", "--web.listen-address=$address" ];
	});
}

# Evaluates an expression in Prometheus. Returns labels and value of each series.
sub asked
{
	my ($self, $expression) = @_;
	my $answer = HTTP::Tiny->new(timeout => 30)->post_form('http://' . $self->address . '/api/v1/query', { query => $expression });
	my $content = JSON::PP->new->decode($answer->{content});
	die "$expression: $content->{error}\n" if $content->{status} ne 'success';
	return map { { %{ $_->{metric} }, value => $_->{value}[1] } } @{ $content->{data}{result} };
}

1;
